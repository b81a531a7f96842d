import type { ControlMessage, End, NumberedEvent, RunId, Usage } from "@slipway/contract";

/** The books of model spending. Every method answers after its entry is durable. */
export interface Ledger {
  /** Takes `microUsd` out of what the run has left, before it is spent. False: the run can not cover it, and nothing is taken. */
  reserve(entry: { readonly request: string; readonly run: RunId; readonly microUsd: number }): Promise<boolean>;
  /** Adds to a reservation while its response grows. */
  extend(request: string, microUsd: number): Promise<boolean>;
  /** Replaces the reservation by what was spent. A second settlement of the same request changes nothing. */
  settle(settlement: Settlement): Promise<void>;
  balance(run: RunId): Promise<Balance>;
  /** What the run can still reserve, in micro-USD: others may draw on the same money. */
  left(run: RunId): Promise<number>;
  /** Opens an account. Of a run that has one, only a higher budget counts. */
  open(run: RunId, budgetMicroUsd: number): Promise<void>;
}

export interface Settlement {
  readonly request: string;
  readonly run: RunId;
  readonly role: string;
  readonly model: string;
  readonly usage: Usage;
  readonly microUsd: number;
  /** The endpoint did not say what it counted: the figure is ours. */
  readonly estimated: boolean;
  readonly end: "complete" | "truncated" | "cut" | "failed" | "lost";
}

export interface Balance {
  readonly budgetMicroUsd: number;
  readonly spentMicroUsd: number;
  readonly reservedMicroUsd: number;
}

/** What runs have reported and were told, in order and once. What writes answers after it is durable. */
export interface RunLog {
  /** Appends events that follow on the ones there are. */
  append(run: RunId, events: readonly NumberedEvent[]): Promise<void>;
  /** The first sequence number that is not there. */
  next(run: RunId): Promise<number>;
  /** Of the run's events. */
  bytes(run: RunId): Promise<number>;
  /** Whether these events, which follow on one another, are there with the same content. */
  holds(run: RunId, events: readonly NumberedEvent[]): Promise<boolean>;
  read(run: RunId, after: number): AsyncIterable<NumberedEvent>;
  /** What the run was told by the host, and how the host ended it, if it did. */
  orders(run: RunId): Promise<RunOrders>;
  order(run: RunId, order: RunOrder): Promise<void>;
  /** Lets go of what it remembers of the run; the run stays readable. */
  release(run: RunId): void;
}

export type RunOrder =
  | { readonly type: "control"; readonly message: ControlMessage }
  | { readonly type: "end"; readonly end: End };

export interface RunOrders {
  readonly messages: readonly ControlMessage[];
  readonly end: End | undefined;
}

export interface Clock {
  now(): number;
}
