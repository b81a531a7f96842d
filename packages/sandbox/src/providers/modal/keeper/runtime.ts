import { randomBytes } from "node:crypto";
import { maxLifetimeMs, type SandboxId, type StateReason } from "@slipway/contract";
import { expectDone, openCall } from "../../../agent/connection.ts";
import { readUse } from "../../../agent/use.ts";
import type { Box } from "../../../keeper/boxes/boxes.ts";
import type { Capture, Runtime } from "../../../keeper/runtime.ts";
import { keyBytes } from "../../../link/index.ts";
import type { Origin, SandboxRecord } from "../record.ts";
import { checkGpu } from "./create/gpu.ts";
import { createRuns, type RunParts, type Runs } from "./runs.ts";

/** A sandbox at Modal that was found: its id there. */
export type Found = string;
export type ModalRuntime = Runtime<SandboxRecord, Origin, Found> & { readonly runs: Runs };

export interface RuntimeParts extends RunParts {
  /** Names of sandboxes that add layers to images. */
  readonly working: ReadonlySet<string>;
  /** Images that a capture holds from the garbage collector. */
  readonly held: Map<string, number>;
  /** Of this keeper's sandboxes. */
  readonly tags: Readonly<Record<string, string>>;
}

/** Its files are kept before Modal ends it. */
const lastSnapshotMs = 5 * 60_000;
const linkLimitMs = 20_000;
/** The program that is the sandbox's command, and the agent. */
const ownProcesses = 2;

export function createRuntime(parts: RuntimeParts): ModalRuntime {
  const { account, boxes, held, images, links } = parts;
  const runs = createRuns(parts);

  /** Stops or continues all commands. One that cannot be reached has nobody who hears it, either. */
  const setStopped = async ({ id, record }: Box<SandboxRecord>, stopped: boolean) => {
    if (record.run === null) return;
    try {
      using call = await openCall(links.get(record).dial, stopped ? "Z" : "Y", {}, AbortSignal.timeout(linkLimitMs));
      await expectDone(call, id);
    } catch {}
  };
  const hold = (origin: Origin): Capture<Origin> => {
    held.set(origin.imageId, (held.get(origin.imageId) ?? 0) + 1);
    let isHeld = true;
    return {
      origin,
      // Modal does not tell.
      bytes: 0,
      [Symbol.dispose]() {
        const count = held.get(origin.imageId) ?? 0;
        if (isHeld && count > 1) held.set(origin.imageId, count - 1);
        else if (isHeld) held.delete(origin.imageId);
        isHeld = false;
      },
    };
  };
  /** Its present files as an image, which is held before it is known to the garbage collector. */
  const capture = async (box: Box<SandboxRecord>): Promise<Capture<Origin>> => {
    const { imageId, store, run } = box.record;
    if (run === null) return hold({ imageId, store });
    const files = hold({ imageId: await account.snapshot(await runs.handle(box)), store });
    images.keep(files.origin);
    return files;
  };
  const stop = async (box: Box<SandboxRecord>) => {
    // What commands said after the snapshot would be in no log.
    await setStopped(box, true);
    using files = await capture(box).catch(async (error: unknown) => {
      await setStopped(box, false);
      throw error;
    });
    boxes.update(box, files.origin);
    await runs.end(box);
  };

  return {
    runs,
    longestLifeMs: maxLifetimeMs - lastSnapshotMs,
    requireRoom() {},
    async originOf(request, signal) {
      if (request.gpu !== undefined) checkGpu(request.gpu);
      return await images.base(request.image, { signal });
    },
    recordOf: (common, { imageId, store }) => ({
      ...common,
      imageId,
      store,
      key: randomBytes(keyBytes).toString("hex"),
      environment: {},
      run: null,
    }),
    capture,
    reserve: (id) => ({ recorded: { run: runs.plan(id) }, start: runs.start }),
    end: runs.end,
    stop,
    ended: { run: null },
    async sleep(box, isDue) {
      using files = await capture(box);
      // It may have been used while the snapshot was taken.
      if (!(await isDue())) return false;
      boxes.update(box, files.origin);
      await runs.end(box);
      boxes.update(box, { run: null });
      return true;
    },
    async wake(box) {
      boxes.update(box, { run: runs.plan(box.id) });
      try {
        await runs.start(box, AbortSignal.timeout(10 * 60_000));
      } catch (error) {
        await runs.end(box);
        boxes.update(box, { run: null });
        throw error;
      }
    },
    // Images without a name are collected.
    async removeFiles() {},
    async processes({ record }) {
      if (record.run?.link == null) return 0;
      const execs = await links
        .get(record)
        .logs.list(async () => true)
        .catch(() => []);
      return ownProcesses + execs.filter(({ exit }) => exit === null).length;
    },
    use: (box) => readUse(links.get(box.record).dial, box.id, AbortSignal.timeout(linkLimitMs)),
    async extended(box) {
      // A link that is lost is told when it is back.
      if (box.record.state === "running") runs.keep(box).catch(() => undefined);
    },
    ...createFinding(parts, runs),
  };
}

type Finding = Pick<
  ModalRuntime,
  "survey" | "isUp" | "isGone" | "whyGone" | "adopt" | "endFound" | "sandboxesWithFiles"
>;

/** What runs at Modal, against what is recorded. */
function createFinding({ account, boxes, slots, tags, working, clock }: RuntimeParts, runs: Runs): Finding {
  let surveyedAt = 0;
  const exitOf = async ({ record: { run } }: Box<SandboxRecord>) => {
    if (run === null) return undefined;
    const sandboxId = run.sandboxId ?? (await account.find(run.name))?.sandboxId;
    return sandboxId === undefined ? undefined : await account.exitCode(sandboxId);
  };
  /** The sandbox of ours that this is a start of; its name where that has another one, or is not recorded. */
  const ownerOf = async (sandboxId: string): Promise<string | undefined> => {
    for (const { id, record } of boxes.all()) if (record.run?.sandboxId === sandboxId) return id;
    const found = await account.tags(sandboxId);
    if (found === undefined || working.has(found["slipway-layer"] ?? "")) return undefined;
    const { "slipway-sandbox": id = "", "slipway-run": name = "" } = found;
    return boxes.find(id as SandboxId)?.record.run?.name === name ? id : name || sandboxId;
  };
  return {
    async survey() {
      surveyedAt = clock.now();
      const found = new Map<SandboxId, Found>();
      for (const sandboxId of await account.list(tags)) {
        const owner = await ownerOf(sandboxId);
        if (owner !== undefined) found.set(owner as SandboxId, sandboxId);
      }
      return found;
    },
    isUp: ({ record: { run, state } }, found) =>
      state === "sleeping" || found !== undefined || (run !== null && run.askedAt >= surveyedAt),
    isGone: async (box) => box.record.state === "running" && (await exitOf(box)) !== null,
    async whyGone(box): Promise<StateReason | null> {
      const exitCode = await exitOf(box);
      // Its own program has kept the deadline, or Modal has.
      if (exitCode === 0 || exitCode === timedOut) return "expired";
      return exitCode === undefined ? "provider_lost" : "killed";
    },
    async adopt(box, sandboxId) {
      const { run, state, wasRunning } = box.record;
      if (state === "sleeping") {
        if (sandboxId !== undefined) await account.terminate(sandboxId);
        if (run !== null) boxes.update(box, { run: null });
        return true;
      }
      if (sandboxId === undefined || run === null) return false;
      slots.occupy(run.name);
      await runs.found(box, sandboxId);
      if (wasRunning && state === "running") return true;
      return await runs.keep(box, AbortSignal.timeout(linkLimitMs)).then(
        () => true,
        () => false,
      );
    },
    async endFound(sandboxId) {
      if ((await account.exitCode(sandboxId)) !== null) return false;
      await account.terminate(sandboxId);
      return true;
    },
    sandboxesWithFiles: () => [],
  };
}

const timedOut = 124;
