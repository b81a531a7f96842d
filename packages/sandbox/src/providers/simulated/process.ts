import type { Duplex } from "node:stream";
import { SlipwayError } from "@slipway/contract";
import { type Clock, sleep } from "./clock.ts";
import type { ExecLog } from "./exec-log.ts";
import { type FileStore, SimulatedFiles } from "./files.ts";
import type { InputQueue } from "./input-queue.ts";
import { unlessAborted } from "./notifier.ts";
import type { SimulatedProcess, SimulatedProgram } from "./program.ts";

/** What a process has from its sandbox. */
export interface ProcessHost {
  readonly clock: Clock;
  readonly env: Readonly<Record<string, string>>;
  readonly cwd: string;
  readonly user: "agent" | "root";
  /** Waits while the sandbox sleeps. */
  awake(signal?: AbortSignal): Promise<void>;
  /** How long the sandbox has been awake in all. */
  awakeMs(): number;
  store(): FileStore;
  listen(port: number, handler: (connection: Duplex) => void, signal: AbortSignal): void;
  dial(path: string, signal: AbortSignal): Duplex;
  egress(host: string, port: number): Readonly<Record<string, string>> | null;
  outOfMemory(): void;
}

export interface ProcessEnd {
  readonly exitCode: number | null;
  readonly signal: string | null;
}

export interface Process {
  readonly main: boolean;
  readonly ended: Promise<ProcessEnd>;
  deliver(name: NodeJS.Signals): void;
  end(signal: NodeJS.Signals): void;
}

interface ProcessSetup {
  readonly host: ProcessHost;
  readonly exec: {
    readonly request: { readonly argv: readonly string[] };
    readonly input: InputQueue;
    readonly log: ExecLog;
  };
  readonly main: boolean;
  fork(program: SimulatedProgram): void;
  outOfMemory(): void;
}

/** Signals that do nothing to a process that does not take them. */
const harmless = new Set<string>(["SIGCHLD", "SIGCONT", "SIGURG", "SIGWINCH"]);

/** Thrown through a program whose process has ended. */
class ProcessEnded extends Error {}

class ProcessExit extends Error {
  readonly exitCode: number;

  constructor(exitCode: number) {
    super(`exit ${exitCode}`);
    this.exitCode = exitCode;
  }
}

export function startProcess(program: SimulatedProgram, setup: ProcessSetup): Process {
  const controller = new AbortController();
  const traps = new Map<string, () => void>();
  const { promise: ended, resolve } = Promise.withResolvers<ProcessEnd>();
  const finish = (end: ProcessEnd) => {
    if (controller.signal.aborted) return;
    controller.abort(new ProcessEnded());
    resolve(end);
  };
  const end = (signal: NodeJS.Signals) => finish({ exitCode: null, signal });
  void play(program, processView(setup, traps, controller.signal, end)).then((exitCode) =>
    finish({ exitCode, signal: null }),
  );
  return {
    main: setup.main,
    ended,
    end,
    deliver(name) {
      const taken = name === "SIGKILL" ? undefined : traps.get(name);
      if (taken !== undefined) taken();
      else if (!harmless.has(name)) end(name);
    },
  };
}

/** A program's exit code. One that throws ends as an uncaught exception does, with its words on stderr. */
async function play(program: SimulatedProgram, process: SimulatedProcess): Promise<number> {
  try {
    // Not in the caller's turn: an exec answers before its program runs.
    await null;
    return (await program(process)) ?? 0;
  } catch (error) {
    if (error instanceof ProcessExit) return error.exitCode;
    if (!process.signal.aborted) await process.stderr.write(`${error}\n`).catch(() => undefined);
    return 1;
  }
}

function processView(
  { host, exec, fork, outOfMemory }: ProcessSetup,
  traps: Map<string, () => void>,
  signal: AbortSignal,
  end: (signal: NodeJS.Signals) => void,
): SimulatedProcess {
  const live = async () => {
    signal.throwIfAborted();
    await host.awake(signal);
  };
  const output = (stream: "stdout" | "stderr") => ({
    async write(data: Uint8Array | string) {
      await live();
      await exec.log.append(stream, typeof data === "string" ? Buffer.from(data) : data, signal);
    },
  });
  return {
    argv: exec.request.argv,
    env: host.env,
    cwd: host.cwd,
    user: host.user,
    stdin: exec.input.read(signal),
    stdout: output("stdout"),
    stderr: output("stderr"),
    files: new SimulatedFiles({
      async begin(_operation, caller) {
        await unlessAborted(live(), caller);
        return {
          store: host.store(),
          signal: caller === undefined ? signal : AbortSignal.any([caller, signal]),
          [Symbol.dispose]: () => undefined,
        };
      },
    }),
    signal,
    clock: {
      now: () => host.clock.now(),
      async sleep(ms) {
        await sleep(host.clock, ms, signal);
        await live();
      },
    },
    trap: (name, handler) => void traps.set(name, handler),
    exit(code) {
      throw new ProcessExit(code);
    },
    fork,
    listen(port, handler) {
      signal.throwIfAborted();
      host.listen(port, handler, signal);
    },
    async dial(path) {
      await live();
      return host.dial(path, signal);
    },
    egress(name, port) {
      signal.throwIfAborted();
      return host.egress(name, port);
    },
    outOfMemory() {
      outOfMemory();
      host.outOfMemory();
      end("SIGKILL");
      throw new SlipwayError("process_limit", "The process was ended for memory.");
    },
  };
}
