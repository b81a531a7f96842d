import {
  type ExecEndReason,
  type ExecExit,
  type ExecId,
  type ExecInfo,
  type ExecRequest,
  SlipwayError,
} from "@slipway/contract";
import type { Clock } from "./clock.ts";
import { ExecLog } from "./exec-log.ts";
import { InputQueue } from "./input-queue.ts";
import { Notifier } from "./notifier.ts";
import { type Process, type ProcessHost, startProcess } from "./process.ts";
import type { SimulatedProgram } from "./program.ts";

export type StartedRequest = ExecRequest & { readonly argv: string[] };

/** A command in a sandbox: its first process, what that started, and the record of both. */
export class ExecRecord {
  readonly id: ExecId;
  readonly request: StartedRequest;
  readonly startedAt: number;
  readonly log = new ExecLog();
  readonly input: InputQueue;
  /** A promise that the log of an ended command still answers. */
  readonly ended = Promise.withResolvers<ExecExit>();
  #exit: ExecExit | null = null;
  /** Why it ends, when the cause is not the command itself. */
  #cause: ExecEndReason | null = null;
  #cancelTimeout: (() => void) | null = null;
  readonly #processes = new Set<Process>();
  readonly #gone = new Notifier();
  readonly #clock: Clock;
  readonly #onEnd: () => void;

  constructor(id: ExecId, request: StartedRequest, clock: Clock, onEnd: () => void) {
    this.id = id;
    this.request = request;
    this.startedAt = clock.now();
    this.input = new InputQueue(request.stdin === "open");
    this.#clock = clock;
    this.#onEnd = onEnd;
  }

  get exit(): ExecExit | null {
    return this.#exit;
  }

  /** Processes that live: daemons outlive the command. */
  get processCount(): number {
    return this.#processes.size;
  }

  info(): ExecInfo {
    const { id, startedAt } = this;
    return { id, argv: this.request.argv, startedAt, background: this.request.background, exit: this.#exit };
  }

  start(program: SimulatedProgram, host: ProcessHost, timeoutMs: number | null): void {
    this.#run(program, host, true);
    if (timeoutMs !== null) this.#endAt(host.awakeMs() + timeoutMs, host);
  }

  signal(name: NodeJS.Signals, tree: boolean): void {
    if (this.#exit !== null && !tree) throw new SlipwayError("exec_ended", "The command has ended.");
    for (const process of [...this.#processes]) if (tree || process.main) process.deliver(name);
  }

  /** TERM, the grace period, KILL. */
  async kill(graceMs: number, signal: AbortSignal | undefined): Promise<void> {
    if (this.#processes.size === 0) return;
    this.#cause ??= "killed";
    this.signal("SIGTERM", true);
    const cancel = this.#clock.after(graceMs, () => this.endAll("killed"));
    try {
      while (this.#processes.size > 0) await this.#gone.wait(signal);
    } finally {
      if (this.#processes.size === 0) cancel();
    }
  }

  /** Ends every process at once. */
  endAll(cause: ExecEndReason): number {
    const count = this.#processes.size;
    this.#cause ??= cause;
    for (const process of [...this.#processes]) process.end("SIGKILL");
    return count;
  }

  /** The sandbox's sleep does not use up a command's time. */
  #endAt(awakeMs: number, host: ProcessHost): void {
    if (this.#exit !== null) return;
    this.#cancelTimeout = this.#clock.after(awakeMs - host.awakeMs(), () => {
      if (host.awakeMs() >= awakeMs) this.endAll("timeout");
      else void host.awake().then(() => this.#endAt(awakeMs, host));
    });
  }

  #run(program: SimulatedProgram, host: ProcessHost, main: boolean): void {
    const process = startProcess(program, {
      host,
      exec: this,
      main,
      fork: (child) => this.#run(child, host, false),
      outOfMemory: () => {
        this.#cause ??= "out_of_memory";
      },
    });
    this.#processes.add(process);
    void process.ended.then((end) => {
      this.#processes.delete(process);
      if (main) this.#finish(end);
      if (this.#processes.size === 0) this.#gone.notify();
    });
  }

  #finish({ exitCode, signal }: { exitCode: number | null; signal: string | null }): void {
    this.#cancelTimeout?.();
    const reason = exitCode === null ? (this.#cause ?? "signaled") : "exited";
    const { stdout, stderr } = this.log.offsets;
    const durationMs = this.#clock.now() - this.startedAt;
    this.#exit = { reason, exitCode, signal, durationMs, stdoutBytes: stdout, stderrBytes: stderr };
    this.input.close();
    this.log.end();
    this.ended.resolve(this.#exit);
    this.#onEnd();
  }
}
