import { SlipwayError } from "@slipway/contract";
import type { CallOptions } from "../../provider.ts";
import { sleep } from "./clock.ts";
import type { Operation } from "./faults.ts";
import { Notifier, throwIfAborted, unlessAborted } from "./notifier.ts";
import type { World } from "./world.ts";

/** One coordinator's way to the world: where latencies and ordered faults happen, and what breaks when it is cut. */
export class Connection {
  readonly world: World;
  #streams = new AbortController();
  readonly #life = new AbortController();

  constructor(world: World) {
    this.world = world;
  }

  /** Runs a call: its faults, its latency, then the work, then the loss of its answer if one was ordered. */
  async call<T>(operation: Operation, options: CallOptions | undefined, work: () => T | Promise<T>): Promise<T> {
    const lost = await this.begin(operation, options?.signal);
    const answer = await work();
    if (lost !== null) throw lost;
    return answer;
  }

  /** What comes before the work of a call. Answers the error that is to replace its answer. */
  async begin(operation: Operation, signal: AbortSignal | undefined): Promise<Error | null> {
    const { world } = this;
    throwIfAborted(signal);
    this.#requireOpen();
    const latency = world.settings.latenciesMs[operation] ?? 0;
    if (latency > 0) await unlessAborted(sleep(world.clock, latency), signal);
    const fault = world.faults.take(operation);
    if (fault === undefined) return null;
    if (fault.type === "slow") await unlessAborted(sleep(world.clock, fault.ms), signal);
    else if (fault.type === "hang") await new Notifier().wait(this.during(signal));
    else if (fault.when === "before") throw fault.error;
    else return fault.error;
    return null;
  }

  /** A signal for a stream: the caller's, or the cut of this connection. */
  during(signal: AbortSignal | undefined): AbortSignal {
    this.#requireOpen();
    return signal === undefined ? this.#streams.signal : AbortSignal.any([signal, this.#streams.signal]);
  }

  /** Breaks every stream; calls after it work again. */
  cut(): void {
    const cut = this.#streams;
    this.#streams = new AbortController();
    cut.abort(new SlipwayError("provider_unavailable", "The connection to the provider was cut."));
  }

  /** Aborted when the coordinator is gone. */
  get closed(): AbortSignal {
    return this.#life.signal;
  }

  close(): void {
    this.#life.abort();
    this.cut();
  }

  #requireOpen(): void {
    if (this.closed.aborted) throw new SlipwayError("provider_unavailable", "This provider has been closed.");
  }
}
