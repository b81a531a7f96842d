import { closeSync, constants, fstatSync, ftruncateSync, openSync, readSync, writeSync } from "node:fs";
import { join } from "node:path";
import type { ExecOffsets } from "@slipway/contract";
import { namesIn } from "../../state-files.ts";
import { frameHeaderBytes, frameType } from "../wire.ts";
import { encodeLostExit } from "./log.ts";

/** Ends every log that has no exit as lost. For a sandbox that has ended: nothing writes its logs any more. */
export function closeExecLogs(directory: string): void {
  for (const name of namesIn(directory)) closeLog(join(directory, name));
}

function closeLog(path: string): void {
  const fd = openSync(path, constants.O_RDWR | constants.O_NOFOLLOW);
  try {
    const { end, hasExit, seen } = scan(fd);
    if (hasExit) return;
    // Drops a frame that the kill cut in the middle.
    ftruncateSync(fd, end);
    const exit = encodeLostExit(seen);
    writeSync(fd, exit, 0, exit.length, end);
  } finally {
    closeSync(fd);
  }
}

/** Walks the whole frames, up to the exit. */
function scan(fd: number): { end: number; hasExit: boolean; seen: ExecOffsets } {
  const { size } = fstatSync(fd);
  const header = Buffer.alloc(frameHeaderBytes);
  const seen = { stdout: 0, stderr: 0 };
  let end = 0;
  for (;;) {
    if (readSync(fd, header, 0, frameHeaderBytes, end) < frameHeaderBytes) break;
    const type = header[0];
    const length = header.readUInt32LE(1);
    if (end + frameHeaderBytes + length > size) break;
    if (type === frameType.exit) return { end, hasExit: true, seen };
    if (type === frameType.stdout) seen.stdout += length;
    if (type === frameType.stderr) seen.stderr += length;
    end += frameHeaderBytes + length;
  }
  return { end, hasExit: false, seen };
}
