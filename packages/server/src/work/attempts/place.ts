import { agentTool, runnerTools } from "@slipway/agent-host";
import { type CreateSandboxInput, hasCode, type SandboxInfo, SlipwayError } from "@slipway/contract";
import type { WorkingBuild } from "@slipway/engine";
import { projectPath, readText, type Sandbox, type SandboxProvider } from "@slipway/sandbox";
import type { BuildSecrets } from "../build-secrets.ts";
import { type Life, usualLife } from "../compute/life.ts";
import { patiently } from "../planning/patience.ts";
import { packageEnvironment } from "../workspaces/install.ts";
import type { Workspaces } from "../workspaces/workspaces.ts";
import type { Kept } from "./kept.ts";

export interface PlaceParts {
  readonly provider: Pick<SandboxProvider, "create" | "get" | "list" | "snapshots" | "events">;
  readonly workspaces: Pick<Workspaces, "base">;
  readonly secrets: Pick<BuildSecrets, "of">;
  readonly agent: string;
  /** Left out: the usual one. */
  readonly life?: Life | undefined;
}

/** The label of attempts' sandboxes, by which any process finds them. */
export const purpose = "attempt";

/** Finds or makes the sandbox for this life of the attempt. Undefined: it had one, which is gone. */
export async function openPlace(
  parts: PlaceParts & { readonly build: WorkingBuild; settled(): Promise<unknown> },
  kept: Kept,
  signal: AbortSignal,
): Promise<Sandbox | undefined> {
  const { build } = parts;
  // An ending attempt that waits for ending attempts would wait for itself.
  signal.throwIfAborted();
  if (kept.order.from === "last-attempt") await parts.settled();
  const found = await patiently(() => findPlace(parts, build, kept), signal);
  if (found !== undefined || kept.sandbox !== null) return found;
  const make = () => makePlace(parts, build, kept, signal).catch(findIfMade);
  const findIfMade = async (error: unknown) => {
    // An earlier process made it from another snapshot.
    const made = hasCode(error, "idempotency_conflict") ? await findPlace(parts, build, kept) : undefined;
    if (made === undefined) throw error;
    return made;
  };
  return await patiently(make, signal);
}

/** What to keep about the attempt's new sandbox. */
export async function newPlace({ snapshots, order }: Kept, sandbox: Sandbox): Promise<Pick<Kept, "sandbox" | "order">> {
  const isFresh = snapshots.length === 0 && order.from === "main";
  const installed = isFresh ? await isInstalled(sandbox) : order.installed;
  return { sandbox: sandbox.id, order: { ...order, installed } };
}

/** Finds the sandbox for this life of the attempt, and starts it if needed. Undefined: there is none. */
async function findPlace(
  { provider }: Pick<PlaceParts, "provider">,
  build: WorkingBuild,
  life: Pick<Kept, "id" | "respawn">,
): Promise<Sandbox | undefined> {
  const labels = { build: build.id, purpose, attempt: life.id, respawn: String(life.respawn) };
  const [info] = await provider.list({ labels });
  if (info === undefined) return undefined;
  if (info.state === "creating") throw new SlipwayError("provider_unavailable", `${info.id} is still being created`);
  try {
    const sandbox = await provider.get(info.id);
    if (info.state === "stopped") await sandbox.start();
    if (info.state === "sleeping") await sandbox.wake();
    if (info.state !== "error") return sandbox;
    await sandbox.destroy();
  } catch (error) {
    // The sandbox has ended meanwhile.
    const isLeft = error instanceof SlipwayError && (error.retry === "later" || error.code === "budget_exhausted");
    if (isLeft || !(error instanceof SlipwayError)) throw error;
  }
  return undefined;
}

/**
 * Makes the sandbox for this life of the attempt: from its last checkpoint, from the sandbox that an earlier attempt at
 * the task left, or from a base with main's dependencies.
 */
async function makePlace(parts: PlaceParts, build: WorkingBuild, kept: Kept, signal: AbortSignal): Promise<Sandbox> {
  const { provider, workspaces } = parts;
  const request = await requestOf(parts, build, kept);
  const snapshot = kept.snapshots.at(-1);
  if (snapshot !== undefined) {
    const made = await provider.create({ ...request, snapshot }, { signal }).catch(ifGone);
    if (made !== undefined) return made;
  }
  if (kept.order.from === "last-attempt") {
    const [last] = await leftPlaces(parts, build, kept);
    const made = last && (await (await provider.get(last.id)).fork(request, { signal }).catch(ifGone));
    if (made !== undefined) return made;
  }
  const base = await workspaces.base(build, kept.order.base, { signal });
  return await provider.create({ ...request, ...(base !== null && { snapshot: base }) }, { signal });
}

function ifGone(error: unknown): undefined {
  if (!hasCode(error, "snapshot_not_found") && !hasCode(error, "sandbox_not_found")) throw error;
}

async function requestOf(
  { agent, secrets, life = usualLife }: PlaceParts,
  build: WorkingBuild,
  { id, task, number, respawn, gpu }: Kept,
) {
  const tool = agentTool(agent);
  return {
    tools: [...runnerTools, ...(tool === undefined ? [] : [tool])],
    network: { registries: true, secrets: [...(await secrets.of(build.id))] },
    env: { ...packageEnvironment },
    ...(gpu !== null && { gpu }),
    labels: { build: build.id, purpose, attempt: id, task, number: String(number), respawn: String(respawn) },
    idempotencyKey: `${id}:${respawn}`,
    lifetimeMs: life.lifetimeMs,
    idleMs: null,
    // It goes on with its files once there is time, or money, again.
    onEnd: "stop",
  } satisfies CreateSandboxInput;
}

/** Sandboxes that earlier attempts at the task left, the latest first. */
export async function leftPlaces(
  { provider }: Pick<PlaceParts, "provider">,
  build: WorkingBuild,
  { id, task }: Pick<Kept, "id" | "task">,
): Promise<readonly SandboxInfo[]> {
  const all = await provider.list({ labels: { build: build.id, purpose, task } });
  const numberOf = ({ labels }: SandboxInfo) => Number(labels["number"]);
  return all
    .filter(({ labels }) => labels["attempt"] !== id)
    .toSorted((one, other) => numberOf(other) - numberOf(one) || other.createdAt - one.createdAt);
}

const ownScripts = ["preinstall", "install", "postinstall", "prepare"];

/** Whether the dependencies are complete. Without the project's own install scripts, which have not run, they are. */
async function isInstalled({ files }: Pick<Sandbox, "files">): Promise<boolean> {
  try {
    await files.stat(`${projectPath}/node_modules`);
    const { scripts = {} } = JSON.parse(await readText(files, `${projectPath}/package.json`)) as { scripts?: object };
    return !ownScripts.some((name) => name in scripts);
  } catch (error) {
    if (error instanceof SyntaxError || hasCode(error, "file_not_found")) return false;
    throw error;
  }
}
