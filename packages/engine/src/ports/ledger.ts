import { attemptIdSchema, type BuildId, buildIdSchema, usageSchema } from "@slipway/contract";
import { z } from "zod";

const name = z.string().min(1).max(256);
const microUsd = z.int().min(0);

/** Who spends. What an account reserves and spends counts for its build's account, too, and both must cover it. */
export const accountSchema = z.strictObject({
  /** A build's id, a run's, or another's that spends. */
  id: name,
  build: buildIdSchema.nullable(),
  task: name.nullable().default(null),
  attempt: attemptIdSchema.nullable().default(null),
  agent: name.nullable().default(null),
  gate: name.nullable().default(null),
  budgetMicroUsd: microUsd,
});
export type Account = Readonly<z.input<typeof accountSchema>>;

export const reservationSchema = z.strictObject({
  /** Names the reservation among all. */
  request: name,
  account: name,
  /** The process that will settle it. */
  holder: name,
  kind: z.enum(["model", "compute"]),
  microUsd,
});
export type Reservation = Readonly<z.input<typeof reservationSchema>>;

export const settlementSchema = z.strictObject({
  request: name,
  microUsd,
  /** Of the model or of the sandbox. */
  provider: name,
  end: z.enum(["complete", "truncated", "cut", "failed", "lost"]),
  /** Nobody told what it cost: the figure is ours. */
  estimated: z.boolean(),
  role: z.string().max(256).nullable().default(null),
  model: z.string().max(256).nullable().default(null),
  usage: usageSchema.nullable().default(null),
});
export type LedgerSettlement = Readonly<z.input<typeof settlementSchema>>;

export interface AccountBalance {
  readonly budgetMicroUsd: number;
  readonly spentMicroUsd: number;
  readonly reservedMicroUsd: number;
}

export const costDimensions = ["task", "attempt", "agent", "gate", "provider"] as const;
export type CostDimension = (typeof costDimensions)[number];

export interface Cost {
  /** Null: spent for none of them. */
  readonly of: string | null;
  readonly spentMicroUsd: number;
  readonly reservedMicroUsd: number;
  readonly requests: number;
}

/** Money is set aside before it is spent. What can not be covered is refused, and so is what nobody opened an account for. */
export interface BuildLedger {
  /** Of an account that is there, only a higher budget counts. */
  open(account: Account): Promise<void>;
  /** False: the account or its build can not cover it, and nothing is taken. The same again is true; with other content it fails with `idempotency_conflict`. */
  reserve(reservation: Reservation): Promise<boolean>;
  /** Adds to a reservation that is not settled. */
  extend(request: string, microUsd: number): Promise<boolean>;
  /** Replaces the reservation by what was spent, once. False: it is settled, or there is none, and nothing changes. */
  settle(settlement: LedgerSettlement): Promise<boolean>;
  /**
   * Settles what a dead process had reserved, for one build or for all, at its whole amount: it may have been spent.
   * Answers how many there were.
   */
  abandon(holder: string, build?: BuildId): Promise<number>;
  balance(account: string): Promise<AccountBalance>;
  /** What can still be reserved, in micro-USD: what the account has left, or its build if that is less. */
  left(account: string): Promise<number>;
  /** What a build has cost, by what it was spent for. Each dimension adds up to the same. */
  costs(build: BuildId, dimension: CostDimension): Promise<readonly Cost[]>;
}
