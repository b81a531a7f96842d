import type { Lifecycle } from "../../../../keeper/boxes/lifecycle.ts";
import { type Clock, repeat } from "../../../../keeper/clock.ts";
import type { EventLog } from "../../../../keeper/events/log.ts";
import type { LayerTool } from "../../launch/layer-tool.ts";
import type { Layout } from "../../layout.ts";
import type { Box, Boxes } from "../boxes/boxes.ts";
import type { Hold } from "../boxes/hold.ts";
import { canWrite, type DiskLook, isDiskLookDue } from "../decide.ts";
import type { Space } from "./space.ts";
import { rootDevice, unlinkedBytes } from "./unlinked.ts";

const intervalMs = 1000;
const mebibyte = 1024 * 1024;

export interface WatchParts {
  readonly layout: Layout;
  readonly boxes: Boxes;
  readonly hold: Hold;
  readonly layerTool: LayerTool;
  readonly lifecycle: Pick<Lifecycle, "end">;
  readonly events: EventLog;
  readonly space: Space;
  readonly clock: Clock;
  onError(box: Box, error: unknown): void;
}

/** Every second, looks for OOM kills and, as the disk fills, for sandboxes over their disk limit. */
export function startWatch(parts: WatchParts): Disposable {
  const { boxes, clock, hold, space } = parts;
  const looks = new WeakMap<Box, DiskLook>();
  let usedBefore = space.usedBytes();
  let writtenBytes = 0;
  let writtenBefore = 0;
  const lookAt = async (box: Box) => {
    await tellOomKills(parts, box);
    // A new sandbox may have written all of this since the last look.
    const last = looks.get(box) ?? { at: clock.now(), tookMs: 0, writtenBytes: writtenBefore };
    looks.set(box, last);
    const limitBytes = box.record.request.diskMb * mebibyte;
    if (!isDiskLookDue(last, writtenBytes, limitBytes, clock.now())) return;
    const look = { at: clock.now(), writtenBytes };
    await holdDisk(parts, box, limitBytes);
    looks.set(box, { ...look, tookMs: clock.now() - look.at });
  };
  const look = async () => {
    const used = space.usedBytes();
    writtenBefore = writtenBytes;
    writtenBytes += Math.max(0, used - usedBefore);
    usedBefore = used;
    const able = [...boxes.all()].filter(({ record }) => canWrite(record.state, hold));
    // In parallel: a slow one delays no other.
    await Promise.all(able.map((box) => lookAt(box).catch((error) => parts.onError(box, error))));
  };
  return repeat(clock, () => intervalMs, look);
}

async function tellOomKills({ hold, events }: WatchParts, box: Box): Promise<void> {
  const kills = await hold.oomKills(box);
  if (kills <= (hold.toldOomKills.get(box) ?? 0)) return;
  hold.toldOomKills.set(box, kills);
  events.append({ type: "sandbox.out_of_memory", sandbox: box.id, kills });
}

/** Counts its files, the logs of its commands, and deleted files that its processes hold. */
async function holdDisk(parts: WatchParts, box: Box, limitBytes: number): Promise<void> {
  const { layout, layerTool, lifecycle } = parts;
  const isOver = async () => {
    const shown = await layerTool.measure(layout.box(box.id).root, { mostBytes: limitBytes });
    return shown > limitBytes || shown + (await heldBytes(parts, box)) > limitBytes;
  };
  // Asked twice: a file that is deleted between the two counts is in both.
  if (await isOver()) await lifecycle.end(box.id, "out_of_disk", isOver);
}

/** All of it, whatever its limit is. */
export async function takenBytes(
  { layout, layerTool, hold }: Pick<WatchParts, "layout" | "layerTool" | "hold">,
  box: Box,
): Promise<number> {
  return (await layerTool.measure(layout.box(box.id).root)) + (await heldBytes({ hold }, box));
}

async function heldBytes({ hold }: Pick<WatchParts, "hold">, box: Box): Promise<number> {
  const device = box.record.process && rootDevice(box.record.process.pid);
  return device === null ? 0 : unlinkedBytes(await hold.processes(box), device);
}
