import { type ErrorCode, type SandboxId, SlipwayError } from "@slipway/contract";

/** The calls of the port by name, as faults and latencies know them. */
export type Operation =
  | "create"
  | "get"
  | "list"
  | "reconcile"
  | "prepareImage"
  | "snapshots.list"
  | "snapshots.get"
  | "snapshots.update"
  | "snapshots.delete"
  | "info"
  | "exec"
  | "attach"
  | "execs"
  | "connect"
  | "exec.output"
  | "exec.write"
  | "exec.end"
  | "exec.signal"
  | "exec.kill"
  | "exec.resize"
  | "exec.wait"
  | "files.read"
  | "files.write"
  | "files.stat"
  | "files.list"
  | "files.mkdir"
  | "files.move"
  | "files.remove"
  | "files.watch"
  | "files.search"
  | "files.upload"
  | "files.download"
  | "files.hydrate"
  | "snapshot"
  | "fork"
  | "sleep"
  | "wake"
  | "stop"
  | "start"
  | "destroy"
  | "keepAlive"
  | "setNetwork"
  | "previewUrl"
  | "openChannel";

/** Failures that a test orders. They come in the order they were ordered in, each to one call. */
export interface Faults {
  /** `after`: the call is done, and only its answer is lost. */
  failNext(operation: Operation, error: ErrorCode | Error, options?: { when?: "before" | "after" }): void;
  /** The next call takes so much longer. */
  slowNext(operation: Operation, ms: number): void;
  /** The next call does not answer until its caller gives up. */
  hangNext(operation: Operation): void;
  /** Every open stream of every coordinator breaks with `provider_unavailable`; what they showed goes on. */
  cutStreams(): void;
  /** The sandbox is gone without a word: state `error`, reason `provider_lost`, its commands `lost`. */
  lose(sandbox: SandboxId): void;
  /** The kernel ends the sandbox's commands for memory. */
  outOfMemory(sandbox: SandboxId): void;
}

export type Fault =
  | { readonly type: "fail"; readonly error: Error; readonly when: "before" | "after" }
  | { readonly type: "slow"; readonly ms: number }
  | { readonly type: "hang" };

/** The ordered faults that wait for their call. */
export class FaultQueue {
  readonly #queues = new Map<Operation, Fault[]>();

  add(operation: Operation, fault: Fault): void {
    const queue = this.#queues.get(operation);
    if (queue === undefined) this.#queues.set(operation, [fault]);
    else queue.push(fault);
  }

  take(operation: Operation): Fault | undefined {
    return this.#queues.get(operation)?.shift();
  }
}

export function asError(error: ErrorCode | Error): Error {
  return typeof error === "string" ? new SlipwayError(error, `Ordered by the test: ${error}.`) : error;
}
