import type { ControlMessage, End, NumberedEvent, RunId, Usage } from "@slipway/contract";

/** The books of model spending. Every method resolves after its entry is durable. */
export interface Ledger {
  /** Reserves `microUsd` of what the run has left. False: the run cannot cover it, and nothing is reserved. */
  reserve(entry: { readonly request: string; readonly run: RunId; readonly microUsd: number }): Promise<boolean>;
  /** Extends a reservation while its response grows. */
  extend(request: string, microUsd: number): Promise<boolean>;
  /** Replaces the reservation by the actual cost. Ignores a second settlement of the same request. */
  settle(settlement: Settlement): Promise<void>;
  balance(run: RunId): Promise<Balance>;
  /** What the run can still reserve, in micro-USD. Others may draw on the same money. */
  left(run: RunId): Promise<number>;
  /** Opens an account, or raises the budget of an existing one. */
  open(run: RunId, budgetMicroUsd: number): Promise<void>;
}

export interface Settlement {
  readonly request: string;
  readonly run: RunId;
  readonly role: string;
  readonly model: string;
  readonly usage: Usage;
  readonly microUsd: number;
  /** Our estimate: the endpoint did not report its usage. */
  readonly estimated: boolean;
  readonly end: "complete" | "truncated" | "cut" | "failed" | "lost";
}

export interface Balance {
  readonly budgetMicroUsd: number;
  readonly spentMicroUsd: number;
  readonly reservedMicroUsd: number;
}

/** What runs reported and were told, in order and once. Writes resolve when they are durable. */
export interface RunLog {
  /** Appends events that follow the stored ones. */
  append(run: RunId, events: readonly NumberedEvent[]): Promise<void>;
  /** The first sequence number not in the log. */
  next(run: RunId): Promise<number>;
  /** The size of the run's events. */
  bytes(run: RunId): Promise<number>;
  /** Whether these consecutive events are stored with the same content. */
  holds(run: RunId, events: readonly NumberedEvent[]): Promise<boolean>;
  read(run: RunId, after: number): AsyncIterable<NumberedEvent>;
  /** What the host told the run, and how the host ended it, if it did. */
  orders(run: RunId): Promise<RunOrders>;
  order(run: RunId, order: RunOrder): Promise<void>;
  /** Drops cached state of the run. The run stays readable. */
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
