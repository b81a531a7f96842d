import { constants as osConstants } from "node:os";
import { performance } from "node:perf_hooks";
import type { Duplex } from "node:stream";
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
import { abortable, throwIfAborted, type Waiter } from "../../abort.ts";
import type { Exec } from "../../provider.ts";
import { type Dial, dialUnlessAborted } from "../connection.ts";
import { type AgentFailure, cutError, decodeFailure, startError } from "../errors.ts";
import { encodeFrame, encodeKill, encodeRequest, encodeWindowSize, FrameDecoder, frameType } from "../wire.ts";
import { control, createExecInput } from "./control.ts";
import { decodeExit, followLog, lostExit } from "./log.ts";
import type { ExecLogs } from "./logs.ts";
import { ExecOutput } from "./output.ts";

/** What execs need of their sandbox. */
export interface ExecHost {
  readonly dial: Dial;
  readonly logs: ExecLogs;
  /** Whether the sandbox's pid 1 still runs. Asked when a log has not grown for a while. */
  readonly isAlive: () => Promise<boolean>;
}

/** A validated request: nothing in it holds a NUL. */
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

/** Longer than pid 1 gives a handler to start. Pid 1 ends the log of a handler that it kills for being late. */
const startWaitMs = 20_000;
const nothing: ExecOffsets = { stdout: 0, stderr: 0 };

/** Resolves when the program runs. Attaches instead when the exec id already has a log. */
export async function startExec(host: ExecHost, start: ExecStart, signal?: AbortSignal): Promise<Exec> {
  throwIfAborted(signal);
  const request = encodeStart(start);
  const socket = await dialUnlessAborted(host.dial, signal);
  const output = new ExecOutput(nothing);
  const live = createLive(socket, output);
  socket.write(request);
  let failure: AgentFailure | null;
  try {
    failure = await live.started(signal);
  } catch (error) {
    // The handler may have been killed after it started: then there is a log, which tells the end.
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

async function expectSameCommand({ logs }: ExecHost, { id, argv }: ExecStart, signal?: AbortSignal): Promise<void> {
  const earlier = await readStart(logs, id, signal);
  // A log without a command is that of a lost exec.
  if (earlier === null || earlier.argv.length === 0 || isDeepStrictEqual(earlier.argv, argv)) return;
  throw new SlipwayError("idempotency_conflict", `${id} already names another command.`);
}

/** Waits for the first frame: a handler makes its log a moment before it writes its command, or may die between. */
async function readStart(logs: ExecLogs, id: ExecId, signal?: AbortSignal): Promise<ExecInfo | null> {
  const untilMs = performance.now() + startWaitMs;
  for (;;) {
    const info = await logs.find(id, true);
    if (info === null || info.argv.length > 0 || info.exit !== null) return info;
    if (performance.now() > untilMs) throw new SlipwayError("provider_unavailable", `The log of ${id} stays empty.`);
    throwIfAborted(signal);
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

/** Attaches to a running or ended exec, from the given offsets on. */
export async function attachExec(
  host: ExecHost,
  id: ExecId,
  { from = nothing, signal }: { from?: ExecOffsets | undefined; signal?: AbortSignal | undefined } = {},
): Promise<Exec> {
  throwIfAborted(signal);
  const output = new ExecOutput(from);
  const handle = createHandle(host, id, output, null, true);
  if (!(await handle.follow())) throw new SlipwayError("exec_not_found", `No exec ${id} in this sandbox.`);
  return handle;
}

function encodeStart(start: ExecStart): Buffer {
  const { id, argv, cwd, env, timeoutMs, stdin, background, pty, logLimitBytes = execLogLimitBytes } = start;
  try {
    return encodeRequest(background ? "B" : "X", {
      i: id,
      d: cwd,
      l: String(logLimitBytes),
      a: argv,
      e: Object.entries(env).map(([name, value]) => `${name}=${value}`),
      t: timeoutMs === null ? undefined : String(timeoutMs),
      p: pty && `${pty.cols}x${pty.rows}`,
      s: stdin === "open" ? "" : undefined,
    });
  } catch (cause) {
    throw new SlipwayError("too_large", "Arguments and environment exceed 2 MiB.", { cause });
  }
}

/** The connection that started an exec. A slow reader slows it. */
interface Live {
  readonly socket: Duplex;
  /** Null when the program runs. An abort kills what has started by then. */
  started(signal: AbortSignal | undefined): Promise<AgentFailure | null>;
  /** Called when the connection ends before the exit. */
  onCut(callback: () => void): void;
}

function createLive(socket: Duplex, output: ExecOutput): Live {
  let settle: Waiter<AgentFailure | null> | null = null;
  let cut: (() => void) | null = null;
  let isOver = false;
  const resume = () => socket.resume();
  const decoder = new FrameDecoder({
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
  // `close` follows and tells who waits.
  socket.on("error", () => {});
  socket.on("close", () => {
    isOver = true;
    settle?.reject(cutError("the program was started"));
    if (output.exit === null) cut?.();
  });
  return {
    socket,
    started: (signal) =>
      abortable(signal, (waiter) => {
        settle = waiter;
        return () => {
          socket.end(encodeKill(0));
          output.wait().catch(() => {});
        };
      }),
    onCut(callback) {
      cut = callback;
      if (isOver && output.exit === null) callback();
    },
  };
}

interface Handle extends Exec {
  /** Continues from the log; false when there is none. */
  follow(): Promise<boolean>;
}

function createHandle(host: ExecHost, id: ExecId, output: ExecOutput, live: Live | null, takesInput: boolean): Handle {
  let released: AbortController | null = null;
  let isReleased = false;
  const input = createExecInput(host.dial, id, () => (live !== null && !live.socket.destroyed ? live.socket : null));

  const follow = async (): Promise<boolean> => {
    const log = await host.logs.open(id);
    if (log === null) return false;
    released = new AbortController();
    if (isReleased) released.abort();
    void followLog(log, output, { isAlive: host.isAlive, released: released.signal });
    return true;
  };
  /** A log that cannot be reached for now is there as long as its sandbox is. */
  const goOn = async (): Promise<void> => {
    while (!isReleased) {
      try {
        if (!(await follow())) output.end(lostExit(output.offsets));
        return;
      } catch (error) {
        if (!hasCode(error, "provider_unavailable")) return output.fail(error as Error);
        if (!(await host.isAlive())) return output.end(lostExit(output.offsets));
      }
    }
  };
  live?.onCut(() => void goOn().catch((error: Error) => output.fail(error)));
  const whileRunning = () => {
    if (output.exit !== null) throw new SlipwayError("exec_ended", `${id} has ended.`);
  };
  return {
    id,
    follow,
    output: ({ signal } = {}): AsyncIterable<ExecChunk> => output.take(signal),
    wait: ({ signal } = {}): Promise<ExecExit> => output.wait(signal),
    async write(data, { signal } = {}) {
      whileRunning();
      if (!takesInput) throw new SlipwayError("invalid_request", "The command was started without standard input.");
      await input.write(data, signal);
    },
    async end({ signal } = {}) {
      if (output.exit === null) await input.end(signal);
    },
    async signal(name, { signal, tree = false } = {}) {
      whileRunning();
      const number = osConstants.signals[name];
      if (number === undefined) throw new SlipwayError("invalid_request", `Unknown signal ${name}.`);
      await control(host.dial, id, encodeFrame(frameType.signal, Uint8Array.of(number, tree ? 1 : 0)), signal);
    },
    async kill({ signal, graceMs = 2000 } = {}) {
      try {
        await control(host.dial, id, encodeKill(graceMs), signal);
      } catch (error) {
        // Already gone.
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
      if (output.exit === null) output.fail(new SlipwayError("aborted", `The handle of ${id} was disposed of.`));
    },
  };
}
