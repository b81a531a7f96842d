import { constants } from "node:os";
import { type ExecChunk, type ExecExit, type ExecId, type ExecOffsets, SlipwayError } from "@slipway/contract";
import { missing } from "../../input.ts";
import type { CallOptions, Exec } from "../../provider.ts";
import type { Connection } from "./connection.ts";
import type { ExecRecord } from "./exec.ts";
import { unlessAborted } from "./notifier.ts";

const defaultGraceMs = 5000;

/** A coordinator's handle on a command. */
export class SimulatedExec implements Exec {
  readonly #record: ExecRecord;
  readonly #connection: Connection;
  readonly #from: ExecOffsets;
  readonly #released = new AbortController();
  #taken = false;

  constructor(record: ExecRecord, connection: Connection, from: ExecOffsets = { stdout: 0, stderr: 0 }) {
    this.#record = record;
    this.#connection = connection;
    this.#from = from;
  }

  get id(): ExecId {
    return this.#record.id;
  }

  async *output(options: CallOptions = {}): AsyncGenerator<ExecChunk> {
    if (this.#taken) throw new SlipwayError("invalid_request", "The output was taken already; attach for another.");
    this.#taken = true;
    await this.#connection.begin("exec.output", options.signal);
    const signal = AbortSignal.any([this.#released.signal, this.#connection.during(options.signal)]);
    yield* this.#record.log.read(this.#from, signal);
  }

  async write(data: Uint8Array | string, options: CallOptions = {}): Promise<void> {
    await this.#connection.call("exec.write", options, () => this.#record.input.write(data, options.signal));
  }

  async end(options: CallOptions = {}): Promise<void> {
    await this.#connection.call("exec.end", options, () => this.#record.input.end());
  }

  async signal(name: NodeJS.Signals, options: CallOptions & { tree?: boolean } = {}): Promise<void> {
    if (!Object.hasOwn(constants.signals, name)) throw new SlipwayError("invalid_request", `${name} is no signal.`);
    await this.#connection.call("exec.signal", options, () => this.#record.signal(name, options.tree ?? false));
  }

  async kill(options: CallOptions & { graceMs?: number } = {}): Promise<void> {
    const { graceMs = defaultGraceMs, signal } = options;
    await this.#connection.call("exec.kill", options, () => this.#record.kill(graceMs, signal));
  }

  async resize(_size: { cols: number; rows: number }, options: CallOptions = {}): Promise<void> {
    await this.#connection.call("exec.resize", options, () => {
      throw missing("ptyResize");
    });
  }

  async wait(options: CallOptions = {}): Promise<ExecExit> {
    return await this.#connection.call("exec.wait", options, () => {
      return unlessAborted(this.#record.ended.promise, this.#connection.during(options.signal));
    });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#released.abort(new SlipwayError("aborted", "The handle was let go."));
  }
}
