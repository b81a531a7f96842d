import type { Socket } from "node:net";
import { constants as osConstants } from "node:os";
import { join } from "node:path";
import { performance } from "node:perf_hooks";
import { setTimeout as delay } from "node:timers/promises";
import { isDeepStrictEqual } from "node:util";
import {
  type ExecChunk,
  type ExecExit,
  type ExecId,
  type ExecInfo,
  type ExecOffsets,
  execLogLimitBytes,
  hasCode,
  SlipwayError,
} from "@slipway/contract";
import type { Exec } from "../../../provider.ts";
import type { Dial } from "../agent/connection.ts";
import { type AgentFailure, abortedError, cutError, decodeFailure, startError } from "../agent/errors.ts";
import {
  createFrameDecoder,
  encodeFrame,
  encodeKill,
  encodeRequest,
  encodeWindowSize,
  type Field,
  frameType,
} from "../agent/wire.ts";
import { control, createExecInput } from "./control.ts";
import { decodeExit, followLog, lostExit, openLog, readExecInfo } from "./log.ts";
import { createExecOutput, type ExecOutput } from "./output.ts";

/** What an exec's handle needs of its sandbox. */
export interface ExecHost {
  readonly dial: Dial;
  /** The sandbox's `execs` directory on the host. */
  readonly logDir: string;
  /** Whether the sandbox's pid 1 is still there; asked when a log has been silent for a while. */
  readonly isAlive: () => Promise<boolean>;
}

/** A checked request: nothing in it holds a NUL. */
export interface ExecStart {
  readonly id: ExecId;
  readonly argv: readonly string[];
  /** Absolute. */
  readonly cwd: string;
  /** The whole environment. */
  readonly env: Readonly<Record<string, string>>;
  readonly timeoutMs: number | null;
  readonly stdin: "none" | "open";
  readonly background: boolean;
  readonly pty?: { readonly cols: number; readonly rows: number } | undefined;
  readonly logLimitBytes?: number;
}

/** Longer than pid 1 lets a handler take for its start: it ends the log of one that it has killed for that. */
const startWaitMs = 20_000;
const nothing: ExecOffsets = { stdout: 0, stderr: 0 };

/** Answers when the program runs. An exec id that has a log already is attached to instead. */
export async function startExec(host: ExecHost, start: ExecStart, signal?: AbortSignal): Promise<Exec> {
  if (signal?.aborted) throw abortedError(signal);
  const request = encodeStart(start);
  const socket = await host.dial();
  if (signal?.aborted) {
    socket.destroy();
    throw abortedError(signal);
  }
  const output = createExecOutput(nothing);
  const live = createLive(socket, output);
  socket.write(request);
  let failure: AgentFailure | null;
  try {
    failure = await live.started(signal);
  } catch (error) {
    // Its handler may have been killed after it had begun: then there is a log, and it tells the end.
    if (!hasCode(error, "provider_unavailable")) throw error;
    return await attachOr(error, host, start.id);
  }
  const takesInput = start.stdin === "open" || start.pty !== undefined;
  if (failure === null) return createHandle(host, start.id, output, live, takesInput);
  const error = startError(failure, start.argv[0] ?? "", start.cwd);
  if (failure.errno !== "EEXIST") throw error;
  await expectSameCommand(host, start, signal);
  return await attachOr(error, host, start.id);
}

async function expectSameCommand({ logDir }: ExecHost, { id, argv }: ExecStart, signal?: AbortSignal): Promise<void> {
  const earlier = await readStart(logDir, id, signal);
  // Where it does not say what was started, it tells an end that was lost.
  if (earlier === null || earlier.argv.length === 0 || isDeepStrictEqual(earlier.argv, argv)) return;
  throw new SlipwayError("idempotency_conflict", `${id} was started with another command`);
}

/** A log is there a moment before it says what was started; where its handler was killed in between, it ends. */
async function readStart(logDir: string, id: ExecId, signal?: AbortSignal): Promise<ExecInfo | null> {
  const untilMs = performance.now() + startWaitMs;
  for (;;) {
    const info = await readExecInfo(logDir, id, true);
    if (info === null || info.argv.length > 0 || info.exit !== null) return info;
    if (performance.now() > untilMs) throw new SlipwayError("provider_unavailable", `${id} does not begin`);
    if (signal?.aborted) throw abortedError(signal);
    await delay(5);
  }
}

async function attachOr(error: Error, host: ExecHost, id: ExecId): Promise<Exec> {
  try {
    return await attachExec(host, id);
  } catch (attachError) {
    throw hasCode(attachError, "exec_not_found") ? error : attachError;
  }
}

/** A running or ended exec, its output from the given bytes on. */
export async function attachExec(
  host: ExecHost,
  id: ExecId,
  { from = nothing, signal }: { from?: ExecOffsets; signal?: AbortSignal } = {},
): Promise<Exec> {
  if (signal?.aborted) throw abortedError(signal);
  const output = createExecOutput(from);
  const handle = createHandle(host, id, output, null, true);
  if (!(await handle.follow())) throw new SlipwayError("exec_not_found", `there is no exec ${id}`);
  return handle;
}

function encodeStart(start: ExecStart): Buffer {
  const fields: Field[] = [
    ["i", start.id],
    ["d", start.cwd],
    ["l", String(start.logLimitBytes ?? execLogLimitBytes)],
  ];
  for (const argument of start.argv) fields.push(["a", argument]);
  for (const name in start.env) fields.push(["e", `${name}=${start.env[name]}`]);
  if (start.timeoutMs !== null) fields.push(["t", String(start.timeoutMs)]);
  if (start.pty !== undefined) fields.push(["p", `${start.pty.cols}x${start.pty.rows}`]);
  if (start.stdin === "open") fields.push(["s", ""]);
  try {
    return encodeRequest(start.background ? "B" : "X", fields);
  } catch (cause) {
    throw new SlipwayError("too_large", "arguments and environment are above 2 MiB together", { cause });
  }
}

/** The connection that started an exec: its bytes as they come, slowed by their reader. */
interface Live {
  readonly socket: Socket;
  /** Null when the program runs. An abort ends what may have been started by then. */
  started(signal: AbortSignal | undefined): Promise<AgentFailure | null>;
  /** Called when the connection ends before the exit. */
  onCut(callback: () => void): void;
}

function createLive(socket: Socket, output: ExecOutput): Live {
  let settle: { resolve(failure: AgentFailure | null): void; reject(error: Error): void } | null = null;
  let cut: (() => void) | null = null;
  let isOver = false;
  const resume = () => socket.resume();
  const decoder = createFrameDecoder({
    stream: (type, data) => output.push(type === frameType.stderr ? "stderr" : "stdout", data),
    frame(type, payload) {
      if (type === frameType.exit) output.end(decodeExit(payload));
      else if (type === frameType.done) settle?.resolve(null);
      else if (type === frameType.failed) settle?.resolve(decodeFailure(payload));
    },
  });
  socket.on("data", (chunk: Buffer) => {
    try {
      decoder.push(chunk);
    } catch (error) {
      socket.destroy(error as Error);
    }
    if (output.isFull) {
      socket.pause();
      output.onRoom(resume);
    }
  });
  // A broken connection is one that ended early; `close` follows.
  socket.on("error", () => {});
  socket.on("close", () => {
    isOver = true;
    settle?.reject(cutError("the program was started"));
    if (output.exit === null) cut?.();
  });
  return {
    socket,
    started(signal) {
      return new Promise((resolve, reject) => {
        const onAbort = () => {
          reject(abortedError(signal as AbortSignal));
          socket.end(encodeKill(0));
          output.wait().catch(() => {});
        };
        const done = () => {
          settle = null;
          signal?.removeEventListener("abort", onAbort);
        };
        settle = {
          resolve(failure) {
            done();
            resolve(failure);
          },
          reject(error) {
            done();
            reject(error);
          },
        };
        signal?.addEventListener("abort", onAbort, { once: true });
      });
    },
    onCut(callback) {
      cut = callback;
      if (isOver && output.exit === null) callback();
    },
  };
}

interface Handle extends Exec {
  /** Goes on from the log; false when there is none. */
  follow(): Promise<boolean>;
}

function createHandle(host: ExecHost, id: ExecId, output: ExecOutput, live: Live | null, takesInput: boolean): Handle {
  let released: AbortController | null = null;
  let isReleased = false;
  const input = createExecInput(host.dial, id, () => (live !== null && !live.socket.destroyed ? live.socket : null));

  const follow = async (): Promise<boolean> => {
    const log = await openLog(host.logDir, id);
    if (log === null) return false;
    released = new AbortController();
    if (isReleased) released.abort();
    void followLog(log, output, { path: join(host.logDir, id), isAlive: host.isAlive, released: released.signal });
    return true;
  };
  live?.onCut(() => {
    if (isReleased) return;
    follow().then(
      (found) => found || output.end(lostExit(output.offsets)),
      (error: Error) => output.fail(error),
    );
  });
  const whileRunning = () => {
    if (output.exit !== null) throw new SlipwayError("exec_ended", `${id} has ended`);
  };
  return {
    id,
    follow,
    output: ({ signal } = {}): AsyncIterable<ExecChunk> => output.take(signal),
    wait: ({ signal } = {}): Promise<ExecExit> => output.wait(signal),
    async write(data, { signal } = {}) {
      whileRunning();
      if (!takesInput) throw new SlipwayError("invalid_request", "the command was started without standard input");
      await input.write(data, signal);
    },
    async end({ signal } = {}) {
      if (output.exit === null) await input.end(signal);
    },
    async signal(name, { signal, tree = false } = {}) {
      whileRunning();
      const number = osConstants.signals[name];
      if (number === undefined) throw new SlipwayError("invalid_request", `there is no signal ${name}`);
      await control(host.dial, id, encodeFrame(frameType.signal, Uint8Array.of(number, tree ? 1 : 0)), signal);
    },
    async kill({ signal, graceMs = 2000 } = {}) {
      try {
        await control(host.dial, id, encodeKill(graceMs), signal);
      } catch (error) {
        // Nothing of it runs any more: that is what was asked for.
        if (!hasCode(error, "exec_ended")) throw error;
      }
    },
    async resize(size, { signal } = {}) {
      whileRunning();
      await control(host.dial, id, encodeWindowSize(size), signal);
    },
    async [Symbol.asyncDispose]() {
      isReleased = true;
      released?.abort();
      input.release();
      live?.socket.destroy();
      if (output.exit === null) output.fail(new SlipwayError("aborted", `the handle of ${id} was let go`));
    },
  };
}
