import { statfsSync } from "node:fs";
import type { LayerTool } from "../layer-tool.ts";
import type { Layout } from "../layout.ts";
import type { Box, Boxes } from "./boxes.ts";
import type { Clock } from "./clock.ts";
import type { EventLog } from "./event-log.ts";
import type { Hold } from "./hold.ts";
import type { Lifecycle } from "./lifecycle.ts";

const intervalMs = 1000;
const mebibyte = 1024 * 1024;
/** Growth of the whole file system below this is no reason to measure a sandbox. */
const growthWorthALook = 4 * mebibyte;
/** Measuring takes at most this part of the keeper's time. */
const dutyFactor = 10;

export interface WatchParts {
  readonly layout: Layout;
  readonly boxes: Boxes;
  readonly hold: Hold;
  readonly layerTool: LayerTool;
  readonly lifecycle: Pick<Lifecycle, "end">;
  readonly events: EventLog;
  readonly clock: Clock;
  onError(box: Box, error: unknown): void;
}

/** Looks once a second for kills by the memory limit, and for uppers over their disk limit when the disk filled. */
export function startWatch(parts: WatchParts): Disposable {
  const { boxes, clock, layout } = parts;
  let usedBefore = usedBytes(layout.boxes);
  let restUntil = 0;
  let cancel = () => {};
  let stopped = false;
  const look = async () => {
    for (const box of [...boxes.all()]) await tellOomKills(parts, box);
    const started = clock.now();
    const used = usedBytes(layout.boxes);
    if (started < restUntil || Math.abs(used - usedBefore) < growthWorthALook) return;
    usedBefore = used;
    for (const box of [...boxes.all()]) await holdDisk(parts, box).catch((error) => parts.onError(box, error));
    restUntil = clock.now() + dutyFactor * (clock.now() - started);
  };
  const again = () => {
    if (!stopped) cancel = clock.after(intervalMs, () => look().finally(again));
  };
  again();
  return {
    [Symbol.dispose]() {
      stopped = true;
      cancel();
    },
  };
}

async function tellOomKills({ hold, events }: WatchParts, box: Box): Promise<void> {
  if (box.record.state !== "running") return;
  const kills = await hold.oomKills(box);
  if (kills <= box.oomKills) return;
  box.oomKills = kills;
  events.append({ type: "sandbox.out_of_memory", sandbox: box.id, kills });
}

async function holdDisk({ layout, layerTool, lifecycle }: WatchParts, box: Box): Promise<void> {
  if (box.record.state !== "running") return;
  const limit = box.record.request.diskMb * mebibyte;
  // Its files and the logs of its commands.
  const bytes = await layerTool.measure(layout.box(box.id).root, { mostBytes: limit });
  if (bytes > limit) await lifecycle.end(box.id, "out_of_disk");
}

function usedBytes(path: string): number {
  const { blocks, bfree, bsize } = statfsSync(path);
  return (blocks - bfree) * bsize;
}
