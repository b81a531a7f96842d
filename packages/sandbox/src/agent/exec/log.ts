import { constants, watch } from "node:fs";
import { type FileHandle, open } from "node:fs/promises";
import { constants as osConstants } from "node:os";
import { join } from "node:path";
import {
  type ExecEndReason,
  type ExecExit,
  type ExecId,
  type ExecInfo,
  type ExecOffsets,
  execIdSchema,
} from "@slipway/contract";
import { namesIn } from "../../state-files.ts";
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

const readBytes = 512 * 1024;
/** After this long without growth of a log, check whether its sandbox still runs. */
const silenceMs = 1000;
const listConcurrency = 16;

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

/** Null when the exec has no log. Follows no link. */
export async function openLog(logDir: string, id: ExecId): Promise<FileHandle | null> {
  try {
    return await open(join(logDir, id), constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === "ENOENT" || code === "ELOOP") return null;
    throw error;
  }
}

export interface FollowOptions {
  readonly path: string;
  readonly isAlive: () => Promise<boolean>;
  /** Aborted when the handle is disposed of. */
  readonly released: AbortSignal;
}

/** Adds to the output what the log holds beyond the output's offsets, as it grows, until the exit. Closes the log. */
export async function followLog(log: FileHandle, output: ExecOutput, options: FollowOptions): Promise<void> {
  const seen = { stdout: 0, stderr: 0 };
  let position = 0;
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
  const read = async () => {
    const taken = await takeFrames(log, position, take);
    position += taken;
    return taken > 0;
  };
  let watcher: LogWatcher | null = null;
  try {
    while (!options.released.aborted && output.exit === null) {
      if (output.isFull) await new Promise<void>((resolve) => output.onRoom(resolve));
      if (await read()) continue;
      if (watcher === null) {
        watcher = watchLog(options.path, options.released);
        continue;
      }
      if (await watcher.changed()) continue;
      const alive = options.released.aborted || (await options.isAlive());
      // Whatever was written before the sandbox ended is visible by now.
      if (!alive && !(await read())) output.end(lostExit(seen));
    }
  } catch (error) {
    // The sandbox was destroyed with its logs.
    if ((error as NodeJS.ErrnoException).code === "ENOENT") output.end(lostExit(seen));
    else output.fail(error as Error);
  } finally {
    watcher?.close();
    await log.close();
  }
}

/** Takes the whole frames at a position; returns their bytes. Pid 1 cuts off what a killed handler leaves of one. */
async function takeFrames(
  log: FileHandle,
  position: number,
  take: (type: number, payload: Buffer) => void,
): Promise<number> {
  let block = Buffer.allocUnsafe(readBytes);
  for (;;) {
    const { bytesRead } = await log.read(block, 0, block.length, position);
    let at = 0;
    let next = 0;
    while (at + frameHeaderBytes <= bytesRead) {
      const type = block[at] as number;
      next = at + frameHeaderBytes + frameLength(type, block.readUInt32LE(at + 1));
      if (next > bytesRead) break;
      take(type, block.subarray(at + frameHeaderBytes, next));
      at = next;
    }
    if (at > 0 || bytesRead < block.length) return at;
    block = Buffer.allocUnsafe(next);
  }
}

function streamName(type: number): "stdout" | "stderr" {
  return type === frameType.stderr ? "stderr" : "stdout";
}

/** The exit of a command whose end nobody saw. */
export function lostExit(seen: ExecOffsets): ExecExit {
  const { stdout, stderr } = seen;
  return { reason: "lost", exitCode: null, signal: null, durationMs: 0, stdoutBytes: stdout, stderrBytes: stderr };
}

interface LogWatcher {
  /** False when the log has not grown for a while. */
  changed(): Promise<boolean>;
  close(): void;
}

function watchLog(path: string, released: AbortSignal): LogWatcher {
  let dirty = false;
  let wake: ((changed: boolean) => void) | null = null;
  const notice = () => {
    dirty = true;
    wake?.(true);
  };
  const watcher = watch(path, { persistent: true }, notice);
  watcher.on("error", notice);
  released.addEventListener("abort", notice);
  return {
    async changed() {
      let timer: NodeJS.Timeout | undefined;
      const result =
        dirty ||
        (await new Promise<boolean>((resolve) => {
          wake = resolve;
          timer = setTimeout(resolve, silenceMs, false);
        }));
      clearTimeout(timer);
      wake = null;
      dirty = false;
      return result;
    },
    close() {
      released.removeEventListener("abort", notice);
      watcher.close();
    },
  };
}

/** Every exec that has a log, oldest first. */
export async function listExecs(logDir: string, isAlive: () => Promise<boolean>): Promise<ExecInfo[]> {
  const names = namesIn(logDir).filter((name): name is ExecId => execIdSchema.safeParse(name).success);
  const alive = await isAlive();
  const found: (ExecInfo | null)[] = new Array(names.length).fill(null);
  let next = 0;
  const work = async () => {
    for (let index = next++; index < names.length; index = next++) {
      found[index] = await readExecInfo(logDir, names[index] as ExecId, alive);
    }
  };
  await Promise.all(Array.from({ length: Math.min(listConcurrency, names.length) }, work));
  return found.filter((info) => info !== null);
}

/** Walks all frames to find the exit: the last bytes of the file may be output that looks like one. */
export async function readExecInfo(logDir: string, id: ExecId, alive: boolean): Promise<ExecInfo | null> {
  const log = await openLog(logDir, id);
  if (log === null) return null;
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
    for (let position = 0, taken = 1; taken > 0 && exit === null; position += taken) {
      taken = await takeFrames(log, position, take);
    }
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
