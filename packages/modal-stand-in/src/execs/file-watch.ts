import type { PassThrough } from "node:stream";
import type { Box } from "../boxes/boxes.ts";
import type { Output } from "./output.ts";

export interface WatchOrder {
  readonly path: string;
  readonly recursive?: boolean;
  readonly filter?: readonly string[] | null;
  readonly timeout_secs?: number | null;
}

const eventTypes = { created: "Create", modified: "Modify", removed: "Remove" } as const;

/** Tells of changes, a line of JSON each, until the time is over or the client closes standard input. */
export async function watchFiles(
  { files }: Box,
  { path, recursive = false, filter, timeout_secs }: WatchOrder,
  stdout: Output,
  input: PassThrough,
  signal: AbortSignal,
): Promise<void> {
  await files.stat(path, { followSymlink: true });
  const over = new AbortController();
  const end = () => over.abort();
  input.on("end", end).resume();
  const timer = timeout_secs == null ? undefined : setTimeout(end, timeout_secs * 1000);
  const changes = files.watch(path, { recursive, signal: AbortSignal.any([over.signal, signal]) });
  try {
    for await (const change of changes) {
      const type = eventTypes[change.type];
      if (filter != null && !filter.includes(type)) continue;
      stdout.push(Buffer.from(`${JSON.stringify({ event_type: type, paths: [change.path] })}\n`));
    }
  } catch (error) {
    if (!over.signal.aborted) throw error;
  } finally {
    clearTimeout(timer);
  }
}
