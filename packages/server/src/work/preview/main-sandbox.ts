import type { Duplex } from "node:stream";
import { type BuildId, hasCode, SlipwayError } from "@slipway/contract";
import type { WorkingBuild } from "@slipway/engine";
import {
  type CallOptions,
  devServerPort,
  parseManifest,
  planDevServer,
  type Sandbox,
  type SandboxProvider,
  startDevServer,
} from "@slipway/sandbox";
import { type Life, msToHandover, usualLife } from "../compute/life.ts";
import type { BuildRepository } from "../repository/repository.ts";
import type { Workspaces } from "../workspaces/workspaces.ts";
import { followsFiles } from "./follows-files.ts";
import type { KeptPreview } from "./kept.ts";

type MainPlace = Pick<KeptPreview, "sandbox" | "commit">;

export interface MainSandboxParts {
  readonly provider: Pick<SandboxProvider, "get" | "list">;
  readonly workspaces: Pick<Workspaces, "open" | "move">;
  readonly repositories: { of(build: BuildId): Promise<BuildRepository> };
  /** How long a dev server may take until it answers. */
  readonly readyMs?: number;
  /** Left out: the usual one. */
  readonly life?: Life | undefined;
}

interface MainSandboxOptions extends MainSandboxParts {
  readonly build: WorkingBuild;
  /** Where an earlier process left it. */
  readonly left: MainPlace;
  readonly save: (place: MainPlace) => Promise<void>;
}

interface Place {
  readonly sandbox: Sandbox;
  /** Null: the files are in between two commits. */
  readonly commit: string | null;
}

const purpose = "preview";
export const previewLabels = ({ id }: Pick<WorkingBuild, "id">) => ({ build: id, purpose });

/** The sandbox in which main of one build runs. */
export function createMainSandbox(options: MainSandboxOptions) {
  const { provider, workspaces, repositories, build, left, save, readyMs, life = usualLife } = options;
  let finding: Promise<Place | null> | undefined;
  let place: Place | null = null;

  const set = async (next: Place) => {
    place = next;
    await save({ sandbox: next.sandbox.id, commit: next.commit });
  };
  /** Finds the sandbox of an earlier process. Any other sandbox of the preview was being made when that process died. */
  const find = async (): Promise<Place | null> => {
    const sandboxes = await provider.list({ labels: previewLabels(build) });
    for (const { id } of sandboxes) if (id !== left.sandbox) await (await provider.get(id)).destroy();
    const own = sandboxes.find(({ id }) => id === left.sandbox);
    return own === undefined ? null : { sandbox: await provider.get(own.id), commit: left.commit };
  };
  const findOnce = async (): Promise<Place | null> => {
    finding ??= find();
    finding.catch(() => {
      finding = undefined;
    });
    const found = await finding;
    place ??= found;
    return place;
  };
  const serve = async (sandbox: Sandbox, call: CallOptions) => {
    const running = (await sandbox.execs(call)).filter(({ background, exit }) => background && exit === null);
    for (const { id } of running) await (await sandbox.attach(id, call)).kill();
    await startDevServer(sandbox, { ...call, ...(readyMs !== undefined && { readyMs }) });
  };
  const projectOf = async (commit: string, call: CallOptions) => {
    const names = new Set<string>();
    const wants = (path: string) => {
      if (!path.includes("/")) names.add(path);
      return path === "package.json";
    };
    const files = await (await repositories.of(build.id)).read(commit, wants, call);
    return { names, manifest: files.get("package.json")?.toString("utf8") ?? null };
  };

  /** False: it needs another sandbox. */
  const moveTo = async (commit: string, call: CallOptions): Promise<boolean> => {
    const before = place;
    if (before === null || before.commit === null || !(await isAlive(before.sandbox, call))) return false;
    const { sandbox } = before;
    let keepsServing = await isUp(sandbox, call);
    if (before.commit !== commit) {
      await set({ sandbox, commit: null });
      const changed = await workspaces.move(build, sandbox, { from: before.commit, to: commit }, call);
      await set({ sandbox, commit: changed === null ? before.commit : commit });
      if (changed === null) return false;
      keepsServing &&= changed.length === 0 || followsFiles((await projectOf(commit, call)).manifest);
    }
    if (!keepsServing) await serve(sandbox, call);
    return true;
  };
  /** Keeps showing the old sandbox until the new one is ready. */
  const replace = async (commit: string, call: CallOptions) => {
    await using made = new AsyncDisposableStack();
    const request = { purpose, ports: [devServerPort], lifetimeMs: life.lifetimeMs };
    const sandbox = made.use(await workspaces.open(build, commit, { ...request, ...call }));
    const failure = await serve(sandbox, call).then(
      () => undefined,
      (error: unknown) => error,
    );
    if (hasCode(failure, "aborted")) throw failure;
    const before = place;
    await set({ sandbox, commit });
    made.move();
    // If this fails, its lifetime ends it.
    await before?.sandbox.destroy().catch(() => {});
    if (failure !== undefined) throw failure;
  };

  return {
    /** Connects to the dev server. Throws if there is none. */
    async connect(): Promise<Duplex> {
      const { sandbox } = (await findOnce()) ?? {};
      if (sandbox === undefined) throw new SlipwayError("sandbox_not_running", "main has no sandbox yet");
      return await sandbox.connect(devServerPort);
    },
    /** In how long `handOver` is due. Undefined: nothing runs. */
    async msToHandover(nowMs: number, call: CallOptions): Promise<number | undefined> {
      const { sandbox } = (await findOnce()) ?? {};
      const info = await sandbox?.info(call);
      return info?.state === "running" ? msToHandover(info, life, nowMs) : undefined;
    },
    /** Gives the sandbox its next life, with its files. Await it before the next call. */
    async handOver(call: CallOptions): Promise<void> {
      const { sandbox } = (await findOnce()) ?? {};
      if (sandbox === undefined) return;
      await sandbox.stop(call);
      await sandbox.start(call);
      await serve(sandbox, call);
    },
    /** Whether the commit has a dev server. */
    async canShow(commit: string, call: CallOptions): Promise<boolean> {
      const { names, manifest } = await projectOf(commit, call);
      return planDevServer({ names, manifest: parseManifest(manifest ?? "") }, devServerPort) !== null;
    },
    async end(): Promise<void> {
      const { sandbox } = (await findOnce()) ?? {};
      if (sandbox === undefined) return;
      [finding, place] = [Promise.resolve(null), null];
      await save({ sandbox: null, commit: null });
      await sandbox.destroy();
    },
    /** Moves the sandbox to the commit and starts its dev server. Await it before the next call. */
    async show(commit: string, call: CallOptions): Promise<void> {
      await findOnce();
      const isThere = await moveTo(commit, call).catch((error: unknown) => {
        if (hasCode(error, "aborted") || failuresOfProject.some((code) => hasCode(error, code))) throw error;
        return false;
      });
      if (!isThere) await replace(commit, call);
    },
  };
}

/** A dev server that fails to start would also fail in another sandbox. */
const failuresOfProject = ["exec_not_started", "exec_ended", "connection_refused"] as const;

async function isAlive(sandbox: Sandbox, call: CallOptions): Promise<boolean> {
  try {
    return ["running", "sleeping"].includes((await sandbox.info(call)).state);
  } catch (error) {
    if (hasCode(error, "sandbox_not_found")) return false;
    throw error;
  }
}

async function isUp(sandbox: Sandbox, call: CallOptions): Promise<boolean> {
  try {
    (await sandbox.connect(devServerPort, call)).destroy();
    return true;
  } catch (error) {
    if (hasCode(error, "connection_refused")) return false;
    throw error;
  }
}
