import { constants as osConstants } from "node:os";
import type { ExecEndReason, ExecExit, ExecId, ExecInfo, ExecOffsets } from "@slipway/contract";
import {
  encodeFrame,
  exitPayloadBytes,
  frameHeaderBytes,
  frameLength,
  frameType,
  isStream,
  MalformedFrame,
} from "../wire.ts";
import type { ExecOutput } from "./output.ts";

const reasons: readonly ExecEndReason[] = ["exited", "signaled", "timeout", "killed", "lost"];
const signalNames = new Map(Object.entries(osConstants.signals).map(([name, number]) => [number as number, name]));

export function decodeExit(payload: Buffer): ExecExit {
  if (payload.length !== exitPayloadBytes) throw new MalformedFrame("An exit frame has the wrong size.");
  const reason = reasons[payload.readUInt8(8)] ?? "lost";
  const signal = payload.readInt32LE(4);
  return {
    reason,
    exitCode: reason === "exited" ? payload.readInt32LE(0) : null,
    signal: signal === 0 ? null : (signalNames.get(signal) ?? `SIG${signal}`),
    durationMs: Number(payload.readBigUInt64LE(9)),
    stdoutBytes: Number(payload.readBigUInt64LE(17)),
    stderrBytes: Number(payload.readBigUInt64LE(25)),
  };
}

/** The exit frame that ends the log of a command whose end nobody saw. */
export function encodeLostExit({ stdout, stderr }: ExecOffsets): Buffer {
  const payload = Buffer.alloc(exitPayloadBytes);
  payload.writeInt32LE(-1, 0);
  payload.writeUInt8(reasons.indexOf("lost"), 8);
  payload.writeBigUInt64LE(BigInt(stdout), 17);
  payload.writeBigUInt64LE(BigInt(stderr), 25);
  return encodeFrame(frameType.exit, payload);
}

/** The log of one exec, read from its start. */
export interface ExecLog {
  /** The whole frames that follow; empty when there are none yet. */
  read(): Promise<Buffer>;
  /** Waits for more to read, or for the signal. False when the log has not grown for a while. */
  grown(released: AbortSignal): Promise<boolean>;
  close(): Promise<void>;
}

export interface FollowOptions {
  readonly isAlive: () => Promise<boolean>;
  /** Aborted when the handle is disposed of. */
  readonly released: AbortSignal;
}

/** Adds to the output what the log holds beyond the output's offsets, as it grows, until the exit. Closes the log. */
export async function followLog(log: ExecLog, output: ExecOutput, options: FollowOptions): Promise<void> {
  const seen = { stdout: 0, stderr: 0 };
  const take = (type: number, payload: Buffer): void => {
    if (output.exit !== null) return;
    if (type === frameType.truncated) output.truncated();
    else if (type === frameType.exit) output.end(decodeExit(payload));
    else if (isStream(type)) {
      const name = streamName(type);
      const known = output.offsets[name] - seen[name];
      seen[name] += payload.length;
      if (known < payload.length) output.push(name, known > 0 ? payload.subarray(known) : payload);
    }
  };
  /** False when there is nothing new. */
  const read = async () => takeFrames(await log.read(), take);
  try {
    while (!options.released.aborted && output.exit === null) {
      if (output.isFull) await new Promise<void>((resolve) => output.onRoom(resolve));
      if ((await read()) || (await log.grown(options.released))) continue;
      const alive = options.released.aborted || (await options.isAlive());
      // Whatever was written before the sandbox ended is visible by now.
      if (!alive && !(await read())) output.end(lostExit(seen));
    }
  } catch (error) {
    // The sandbox was destroyed with its logs.
    if ((error as NodeJS.ErrnoException).code === "ENOENT") output.end(lostExit(seen));
    else output.fail(error as Error);
  } finally {
    await log.close();
  }
}

/** The whole frames at the start of some bytes. */
export function wholeFrames(bytes: Buffer): { readonly length: number; readonly next: number } {
  let length = 0;
  let next = 0;
  while (length + frameHeaderBytes <= bytes.length) {
    const type = bytes[length] as number;
    next = length + frameHeaderBytes + frameLength(type, bytes.readUInt32LE(length + 1));
    if (next > bytes.length) break;
    length = next;
  }
  return { length, next };
}

/** False when there are none. */
function takeFrames(frames: Buffer, take: (type: number, payload: Buffer) => void): boolean {
  for (let at = 0; at < frames.length; ) {
    const next = at + frameHeaderBytes + frames.readUInt32LE(at + 1);
    take(frames[at] as number, frames.subarray(at + frameHeaderBytes, next));
    at = next;
  }
  return frames.length > 0;
}

function streamName(type: number): "stdout" | "stderr" {
  return type === frameType.stderr ? "stderr" : "stdout";
}

/** The exit of a command whose end nobody saw. */
export function lostExit(seen: ExecOffsets): ExecExit {
  const { stdout, stderr } = seen;
  return { reason: "lost", exitCode: null, signal: null, durationMs: 0, stdoutBytes: stdout, stderrBytes: stderr };
}

/**
 * Walks all frames to find the exit: the last bytes of the file may be output that looks like one. Closes the log.
 */
export async function readExecInfo(log: ExecLog, id: ExecId, alive: boolean): Promise<ExecInfo> {
  try {
    let start: Pick<ExecInfo, "argv" | "startedAt" | "background"> = { argv: [], startedAt: 0, background: false };
    let exit: ExecExit | null = null;
    const bytes = { stdout: 0, stderr: 0 };
    const take = (type: number, payload: Buffer): void => {
      if (exit !== null) return;
      if (type === frameType.start) start = decodeStart(payload);
      else if (type === frameType.exit) exit = decodeExit(payload);
      else if (isStream(type)) bytes[streamName(type)] += payload.length;
    };
    while (exit === null && takeFrames(await log.read(), take));
    return { id, ...start, exit: exit ?? (alive ? null : lostExit(bytes)) };
  } finally {
    await log.close();
  }
}

function decodeStart(payload: Buffer): Pick<ExecInfo, "argv" | "startedAt" | "background"> {
  if (payload.length < 9) throw new MalformedFrame("A start frame is too short.");
  return {
    startedAt: Number(payload.readBigUInt64LE(0)),
    background: payload.readUInt8(8) === 1,
    argv: payload.toString("utf8", 9).split("\0").slice(0, -1),
  };
}
