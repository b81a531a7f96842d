import { agentTool, runnerTools } from "@slipway/agent-host";
import { type CreateSandboxInput, hasCode, maxLifetimeMs, type SandboxInfo, SlipwayError } from "@slipway/contract";
import type { WorkingBuild } from "@slipway/engine";
import { projectPath, readText, type Sandbox, type SandboxProvider } from "@slipway/sandbox";
import type { BuildSecrets } from "../build-secrets.ts";
import { packageEnvironment } from "../workspaces/install.ts";
import type { Workspaces } from "../workspaces/workspaces.ts";
import type { Kept } from "./kept.ts";
import { patiently } from "./patiently.ts";

export interface PlaceParts {
  readonly provider: Pick<SandboxProvider, "create" | "get" | "list" | "snapshots" | "events">;
  readonly workspaces: Pick<Workspaces, "base">;
  readonly secrets: Pick<BuildSecrets, "of">;
  readonly agent: string;
}

/** Where attempts are: sandboxes that are known by their labels, whichever process has made them. */
export const purpose = "attempt";

/** Finds or makes the sandbox of this life of the attempt. Undefined: there was one, and it is gone. */
export async function openPlace(
  parts: PlaceParts & { readonly build: WorkingBuild; settled(): Promise<unknown> },
  kept: Kept,
  signal: AbortSignal,
): Promise<Sandbox | undefined> {
  const { build } = parts;
  // Waiting for attempts that end would be waiting for itself if this is one of them.
  signal.throwIfAborted();
  if (kept.order.from === "last-attempt") await parts.settled();
  const found = await patiently(() => findPlace(parts, build, kept), signal);
  if (found !== undefined || kept.sandbox !== null) return found;
  const make = () => makePlace(parts, build, kept, signal).catch(findIfMade);
  const findIfMade = async (error: unknown) => {
    // A process that is gone asked for it with another snapshot.
    const made = hasCode(error, "idempotency_conflict") ? await findPlace(parts, build, kept) : undefined;
    if (made === undefined) throw error;
    return made;
  };
  return await patiently(make, signal);
}

/** What to keep of a sandbox that is new to the attempt. */
export async function newPlace({ snapshots, order }: Kept, sandbox: Sandbox): Promise<Pick<Kept, "sandbox" | "order">> {
  const isFresh = snapshots.length === 0 && order.from === "main";
  const installed = isFresh ? await isInstalled(sandbox) : order.installed;
  return { sandbox: sandbox.id, order: { ...order, installed } };
}

/** The sandbox of this life of the attempt; undefined: there is none. One that does not run is started. */
async function findPlace(
  { provider }: Pick<PlaceParts, "provider">,
  build: WorkingBuild,
  life: Pick<Kept, "id" | "respawn">,
): Promise<Sandbox | undefined> {
  const labels = { build: build.id, purpose, attempt: life.id, respawn: String(life.respawn) };
  const [info] = await provider.list({ labels });
  if (info === undefined) return undefined;
  if (info.state === "creating") throw new SlipwayError("provider_unavailable", `${info.id} is not there yet`);
  try {
    const sandbox = await provider.get(info.id);
    if (info.state === "stopped") await sandbox.start();
    if (info.state === "sleeping") await sandbox.wake();
    if (info.state !== "error") return sandbox;
    await sandbox.destroy();
  } catch (error) {
    // It has ended meanwhile.
    if (!(error instanceof SlipwayError) || error.retry === "later") throw error;
  }
  return undefined;
}

/**
 * Makes the sandbox of this life of the attempt: from its last checkpoint, in the one that an earlier attempt at the task
 * has left, or from what main depends on.
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

async function requestOf({ agent, secrets }: PlaceParts, build: WorkingBuild, { id, task, number, respawn }: Kept) {
  const tool = agentTool(agent);
  return {
    tools: [...runnerTools, ...(tool === undefined ? [] : [tool])],
    network: { registries: true, secrets: [...(await secrets.of(build.id))] },
    env: { ...packageEnvironment },
    labels: { build: build.id, purpose, attempt: id, task, number: String(number), respawn: String(respawn) },
    idempotencyKey: `${id}:${respawn}`,
    lifetimeMs: maxLifetimeMs,
    idleMs: null,
    onEnd: "destroy",
  } satisfies CreateSandboxInput;
}

/** What earlier attempts at the task have left, the latest first. */
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

export async function removePlace({ provider }: Pick<PlaceParts, "provider">, { id }: Pick<SandboxInfo, "id">) {
  try {
    await (await provider.get(id)).destroy();
  } catch (error) {
    if (!hasCode(error, "sandbox_not_found") && !hasCode(error, "sandbox_ended")) throw error;
  }
}

const ownScripts = ["preinstall", "install", "postinstall", "prepare"];

/** Whether what the project depends on is there in full: a project's own scripts have not run. */
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
