import { constants, watch } from "node:fs";
import { type FileHandle, open } from "node:fs/promises";
import { join } from "node:path";
import { type ExecId, type ExecInfo, execIdSchema } from "@slipway/contract";
import { namesIn } from "../../state-files.ts";
import { type ExecLog, readExecInfo, wholeFrames } from "./log.ts";

/** The logs of a sandbox's execs, wherever they lie. A log without an exit counts as lost when the sandbox is not alive. */
export interface ExecLogs {
  /** From a position that has been read up to; null when the exec has no log. */
  open(id: ExecId, at?: number): Promise<ExecLog | null>;
  /** Null when the exec has no log. */
  find(id: ExecId, alive: boolean): Promise<ExecInfo | null>;
  /** Every exec that has a log, oldest first. */
  list(isAlive: () => Promise<boolean>): Promise<ExecInfo[]>;
}

const readBytes = 512 * 1024;
/** After this long without growth of a log, check whether its sandbox still runs. */
const silenceMs = 1000;
const listConcurrency = 16;

/** Logs that are files of this machine. */
export function logsIn(directory: string): ExecLogs {
  const openLog = async (id: ExecId, at = 0) => await openFile(join(directory, id), at);
  const find = async (id: ExecId, alive: boolean) => {
    const log = await openLog(id);
    return log === null ? null : await readExecInfo(log, id, alive);
  };
  return {
    open: openLog,
    find,
    async list(isAlive) {
      const names = namesIn(directory).filter((name): name is ExecId => execIdSchema.safeParse(name).success);
      const alive = await isAlive();
      const found: (ExecInfo | null)[] = new Array(names.length).fill(null);
      let next = 0;
      const work = async () => {
        for (let index = next++; index < names.length; index = next++) {
          found[index] = await find(names[index] as ExecId, alive);
        }
      };
      await Promise.all(Array.from({ length: Math.min(listConcurrency, names.length) }, work));
      return found.filter((info) => info !== null);
    },
  };
}

/** Null when there is no such file. Follows no link. */
async function openFile(path: string, at: number): Promise<ExecLog | null> {
  try {
    return readFrom(path, await open(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK), at);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === "ENOENT" || code === "ELOOP") return null;
    throw error;
  }
}

function readFrom(path: string, file: FileHandle, at: number): ExecLog {
  let position = at;
  let watcher: LogWatcher | null = null;
  return {
    async read() {
      const frames = await readFrames(file, position);
      position += frames.length;
      return frames;
    },
    async grown(released) {
      if (watcher !== null) return await watcher.changed();
      watcher = watchLog(path, released);
      // It may have grown before it was watched.
      return true;
    },
    async close() {
      watcher?.close();
      await file.close();
    },
  };
}

/** The whole frames at a position. Pid 1 cuts off what a killed handler leaves of one. */
async function readFrames(file: FileHandle, position: number): Promise<Buffer> {
  let block = Buffer.allocUnsafe(readBytes);
  for (;;) {
    const { bytesRead } = await file.read(block, 0, block.length, position);
    const { length, next } = wholeFrames(block.subarray(0, bytesRead));
    if (length > 0 || bytesRead < block.length) return block.subarray(0, length);
    block = Buffer.allocUnsafe(next);
  }
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
