import { statfsSync } from "node:fs";
import type { LayerTool } from "../layer-tool.ts";
import type { Layout } from "../layout.ts";
import type { Box, Boxes } from "./boxes.ts";
import type { Clock } from "./clock.ts";
import { type DiskLook, isDiskLookDue } from "./decide.ts";
import type { EventLog } from "./event-log.ts";
import type { Hold } from "./hold.ts";
import type { Lifecycle } from "./lifecycle.ts";

const intervalMs = 1000;
const mebibyte = 1024 * 1024;

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

/** Looks once a second for kills by the memory limit, and, as the disk fills, for sandboxes over their disk limit. */
export function startWatch(parts: WatchParts): Disposable {
  const { boxes, clock, layout } = parts;
  const looks = new WeakMap<Box, DiskLook>();
  let usedBefore = usedBytes(layout.boxes);
  let writtenBytes = 0;
  let cancel = () => {};
  let stopped = false;
  const lookAt = async (box: Box) => {
    await tellOomKills(parts, box);
    const last = looks.get(box) ?? { at: clock.now(), tookMs: 0, writtenBytes };
    looks.set(box, last);
    const limitBytes = box.record.request.diskMb * mebibyte;
    if (!isDiskLookDue(last, writtenBytes, limitBytes, clock.now())) return;
    const look = { at: clock.now(), writtenBytes };
    await holdDisk(parts, box, limitBytes);
    looks.set(box, { ...look, tookMs: clock.now() - look.at });
  };
  const look = async () => {
    const used = usedBytes(layout.boxes);
    writtenBytes += Math.max(0, used - usedBefore);
    usedBefore = used;
    const running = [...boxes.all()].filter(({ record }) => record.state === "running");
    // A slow one holds up no other.
    await Promise.all(running.map((box) => lookAt(box).catch((error) => parts.onError(box, error))));
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
  const kills = await hold.oomKills(box);
  if (kills <= box.oomKills) return;
  box.oomKills = kills;
  events.append({ type: "sandbox.out_of_memory", sandbox: box.id, kills });
}

/** What counts are its files and the logs of its commands. */
async function holdDisk({ layout, layerTool, lifecycle }: WatchParts, box: Box, limitBytes: number): Promise<void> {
  const bytes = await layerTool.measure(layout.box(box.id).root, { mostBytes: limitBytes });
  if (bytes > limitBytes) await lifecycle.end(box.id, "out_of_disk");
}

function usedBytes(path: string): number {
  const { blocks, bfree, bsize } = statfsSync(path);
  return (blocks - bfree) * bsize;
}
