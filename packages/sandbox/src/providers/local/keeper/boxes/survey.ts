import { existsSync, readdirSync, readFileSync, readlinkSync } from "node:fs";
import { basename } from "node:path";
import type { SandboxId } from "@slipway/contract";
import type { Layout } from "../../layout.ts";
import type { Box } from "./boxes.ts";
import type { Layers } from "./layers.ts";
import { allProcesses, identify, type ProcessIdentity } from "./process.ts";

/** Finishes the move of an upper to a sealed layer: the record names the layer first. */
export function finishSeal(layout: Layout, layers: Layers, box: Box): void {
  const [top] = box.record.lowers;
  const { upper } = layout.box(box.id);
  if (top !== undefined && !existsSync(layers.tree(top)) && existsSync(upper)) layers.adopt(top, upper);
}

/** Looks at each again in its turn: a destroy may end meanwhile. */
export function* boxesOnDisk(layout: Layout): Iterable<SandboxId> {
  for (const name of readdirSync(layout.boxes)) {
    const id = name as SandboxId;
    if (existsSync(layout.box(id).root)) yield id;
  }
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
