import { existsSync, readdirSync, readFileSync, readlinkSync } from "node:fs";
import { basename, join } from "node:path";
import type { SandboxId, StateReason } from "@slipway/contract";
import type { ReconcileReport } from "../../../provider.ts";
import type { Layout } from "../layout.ts";
import { liveStates } from "../record.ts";
import type { Box, Boxes } from "./boxes.ts";
import type { EventLog } from "./event-log.ts";
import type { Hold } from "./hold.ts";
import type { Layers } from "./layers.ts";
import type { Lifecycle } from "./lifecycle.ts";
import { endProcess, identify, type ProcessIdentity } from "./process.ts";
import type { Runtime } from "./runtime.ts";

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
}

/**
 * Makes what runs and what is recorded agree. `starting`: a new keeper takes over whatever the last one left, at any
 * point where that one may have been killed.
 */
export async function reconcile(parts: ReconcileParts, { starting }: { starting: boolean }): Promise<ReconcileReport> {
  const { layout, boxes, events, lifecycle } = parts;
  const running = findSandboxProcesses(layout);
  const adopted: SandboxId[] = [];
  const lost: SandboxId[] = [];
  const ended: string[] = [];

  for (const box of [...boxes.all()]) {
    const process = running.get(box.id);
    if (starting) finishSeal(parts, box);
    if (!liveStates.includes(box.record.state)) {
      // Stopped in the books, alive in fact: a stop that a crash cut short.
      if (starting && process !== undefined) await endProcess(process);
    } else if (starting) {
      (await takeOver(parts, box, process)) ? adopted.push(box.id) : lost.push(box.id);
    } else if (box.record.state !== "creating" && process === undefined) {
      await lifecycle.died(box);
      lost.push(box.id);
    }
  }
  for (const [id, process] of running) {
    if (boxes.find(id) !== undefined) continue;
    await endProcess(process);
    ended.push(id);
  }
  for (const name of readdirSync(layout.boxes)) {
    if (boxes.find(name as SandboxId) !== undefined) continue;
    // A destroy that was cut short: the record goes first.
    await parts.removeTree(join(layout.boxes, name));
    events.append({ type: "sandbox.destroyed", sandbox: name as SandboxId, reason: "requested" });
  }
  return { adopted, lost, ended, layersRemoved: await parts.collectGarbage() };
}

/** Answers whether the sandbox lives on. Its timers wait until it is taken over. */
function takeOver(parts: ReconcileParts, box: Box, process: ProcessIdentity | undefined): Promise<boolean> {
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
  // Nobody was told of a create that had not ended: as with any failed create, nothing of it stays.
  await removeTree(layout.box(box.id).root);
  boxes.forget(box, "start_failed");
}

/** The record names a sealed layer before the upper is moved to it. */
function finishSeal({ layout, layers }: ReconcileParts, box: Box): void {
  const [top] = box.record.lowers;
  const { upper } = layout.box(box.id);
  if (top !== undefined && !existsSync(layers.tree(top)) && existsSync(upper)) layers.adopt(top, upper);
}

const boxPath = /\/boxes\/(sbx_[0-9a-z]+)(?:\/|$)/;

/**
 * Every sandbox of this state directory that runs, found by the command line of its launcher or outer bubblewrap. Only
 * processes of the keeper's own pid namespace count: what runs inside a sandbox can choose its command line, not its namespace.
 */
export function findSandboxProcesses(layout: Layout): Map<SandboxId, ProcessIdentity> {
  const found = new Map<SandboxId, ProcessIdentity>();
  const own = readlinkSync("/proc/self/ns/pid");
  for (const pid of readdirSync("/proc")) {
    if (!/^\d+$/.test(pid)) continue;
    try {
      if (readlinkSync(`/proc/${pid}/ns/pid`) !== own) continue;
      const argv = readFileSync(`/proc/${pid}/cmdline`, "utf8").split("\0");
      if (!["bwrap", "slipway-launch"].includes(basename(argv[0] ?? ""))) continue;
      const id = argv.map((argument) => boxPath.exec(argument)?.[1]).find((name) => name !== undefined);
      if (id === undefined || !argv.includes(layout.mountPoint)) continue;
      // A launch that has not come to its pid 1 yet stands for itself.
      const [child] = readFileSync(`/proc/${pid}/task/${pid}/children`, "utf8").split(" ");
      const identity = identify(Number(child || pid));
      if (identity !== null) found.set(id as SandboxId, identity);
    } catch {
      // Ended while we looked.
    }
  }
  return found;
}
