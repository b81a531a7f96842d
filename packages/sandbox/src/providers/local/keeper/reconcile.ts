import { existsSync, readdirSync, readFileSync, readlinkSync } from "node:fs";
import { basename } from "node:path";
import type { SandboxId, StateReason } from "@slipway/contract";
import type { ReconcileReport } from "../../../provider.ts";
import type { Layout } from "../layout.ts";
import { liveStates } from "../record.ts";
import type { Box, Boxes } from "./boxes/boxes.ts";
import type { Hold } from "./boxes/hold.ts";
import type { Layers } from "./boxes/layers.ts";
import type { Lifecycle } from "./boxes/lifecycle.ts";
import { allProcesses, endProcess, identify, isAlive, type ProcessIdentity } from "./boxes/process.ts";
import type { Runtime } from "./boxes/runtime.ts";
import type { EventLog } from "./events/log.ts";

export interface ReconcileParts {
  readonly layout: Layout;
  readonly boxes: Boxes;
  readonly events: EventLog;
  readonly layers: Layers;
  readonly hold: Hold;
  readonly runtime: Runtime;
  readonly lifecycle: Pick<Lifecycle, "died">;
  removeTree(path: string): Promise<void>;
  collectGarbage(): Promise<number>;
  log(line: string): void;
  onError(box: Box, error: unknown): void;
}

/**
 * Makes what runs agree with what is recorded. `starting`: a new keeper takes over what the last one left, which may
 * have been killed at any point. A failure with one sandbox does not stop the others.
 */
export async function reconcile(parts: ReconcileParts, { starting }: { starting: boolean }): Promise<ReconcileReport> {
  const { layout, boxes, onError } = parts;
  const running = findSandboxProcesses(layout);
  const adopted: SandboxId[] = [];
  const lost: SandboxId[] = [];
  const ended: string[] = [];

  for (const box of [...boxes.all()]) {
    try {
      const found = starting ? await takeOver(parts, box, running.get(box.id)) : await lookAfter(parts, box);
      if (found === "adopted") adopted.push(box.id);
      if (found === "lost") lost.push(box.id);
    } catch (error) {
      onError(box, error);
    }
  }
  for (const [id, process] of running) if (await endStray(parts, id, process)) ended.push(id);
  for (const name of readdirSync(layout.boxes)) await removeStray(parts, name as SandboxId);
  return { adopted, lost, ended, layersRemoved: await parts.collectGarbage() };
}

type Found = "adopted" | "lost" | "as recorded";

/** For a sandbox of this keeper. Checks its process directly: it may be newer than the list. */
async function lookAfter({ lifecycle }: ReconcileParts, box: Box): Promise<Found> {
  const { state, process } = box.record;
  const isUp = state === "running" || state === "sleeping";
  if (!isUp || (process !== null && isAlive(process))) return "as recorded";
  await lifecycle.died(box);
  return "lost";
}

async function takeOver(parts: ReconcileParts, box: Box, process: ProcessIdentity | undefined): Promise<Found> {
  finishSeal(parts, box);
  if (liveStates.includes(box.record.state)) return (await adopt(parts, box, process)) ? "adopted" : "lost";
  // A crash cut a stop short.
  if (process !== undefined) await endProcess(process);
  return "as recorded";
}

/** Ends what runs without a record, unless it was destroyed since the list was made. */
async function endStray({ boxes, log }: ReconcileParts, id: SandboxId, process: ProcessIdentity): Promise<boolean> {
  if (boxes.find(id) !== undefined || !isAlive(process)) return false;
  try {
    await endProcess(process);
    return true;
  } catch (error) {
    log(`${id}: ${(error as Error).stack}`);
    return false;
  }
}

/** Finishes a destroy that was cut short after it removed the record. */
async function removeStray({ layout, boxes, events, log, removeTree }: ReconcileParts, id: SandboxId): Promise<void> {
  const { root } = layout.box(id);
  if (boxes.find(id) !== undefined || !existsSync(root)) return;
  try {
    await removeTree(root);
    events.append({ type: "sandbox.destroyed", sandbox: id, reason: "requested" });
  } catch (error) {
    log(`${id}: ${(error as Error).stack}`);
  }
}

/** Whether the sandbox lives on. Its timers wait until then. */
function adopt(parts: ReconcileParts, box: Box, process: ProcessIdentity | undefined): Promise<boolean> {
  const { boxes, events, runtime } = parts;
  return boxes.exclusive(box, async () => {
    const { state } = box.record;
    if (process === undefined || !(await runtime.adopt(box, process))) {
      if (process !== undefined) await endProcess(process);
      await endedUnseen(parts, box);
      return false;
    }
    if (state === "creating") boxes.setState(box, "running", "started", { wasRunning: true });
    events.append({ type: "sandbox.adopted", sandbox: box.id });
    return true;
  });
}

async function endedUnseen({ layout, boxes, runtime, hold, removeTree }: ReconcileParts, box: Box): Promise<void> {
  const reason: StateReason = (await hold.oomKills(box)) > 0 ? "out_of_memory" : "provider_lost";
  await runtime.end(box);
  if (box.record.wasRunning) return boxes.setState(box, "stopped", reason, { process: null, cgroups: [] });
  // The create never succeeded, so nothing of it stays.
  await removeTree(layout.box(box.id).root);
  boxes.forget(box, "start_failed");
}

/** Finishes the move of an upper to a sealed layer: the record names the layer first. */
function finishSeal({ layout, layers }: ReconcileParts, box: Box): void {
  const [top] = box.record.lowers;
  const { upper } = layout.box(box.id);
  if (top !== undefined && !existsSync(layers.tree(top)) && existsSync(upper)) layers.adopt(top, upper);
}

const boxPath = /\/boxes\/(sbx_[0-9a-z]+)(?:\/|$)/;

/**
 * The running sandboxes of this state directory, by the command lines of their launchers or outer bubblewraps. Counts
 * only the keeper's own pid namespace: programs inside a sandbox choose their command line, but not their namespace.
 */
export function findSandboxProcesses(layout: Layout): Map<SandboxId, ProcessIdentity> {
  const found = new Map<SandboxId, ProcessIdentity>();
  const own = readlinkSync("/proc/self/ns/pid");
  for (const pid of allProcesses()) {
    try {
      if (readlinkSync(`/proc/${pid}/ns/pid`) !== own) continue;
      const argv = readFileSync(`/proc/${pid}/cmdline`, "utf8").split("\0");
      if (!["bwrap", "slipway-launch"].includes(basename(argv[0] ?? ""))) continue;
      const id = argv.map((argument) => boxPath.exec(argument)?.[1]).find((name) => name !== undefined);
      if (id === undefined || !argv.includes(layout.mountPoint)) continue;
      // A launch without a pid 1 yet counts itself.
      const [child] = readFileSync(`/proc/${pid}/task/${pid}/children`, "utf8").split(" ");
      const identity = identify(Number(child || pid));
      if (identity !== null) found.set(id as SandboxId, identity);
    } catch {
      // It has ended.
    }
  }
  return found;
}
