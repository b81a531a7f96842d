import { attemptIdSchema, type BuildId, buildIdSchema, usageSchema } from "@slipway/contract";
import { z } from "zod";

const name = z.string().min(1).max(256);
const microUsd = z.int().min(0);

/** Who spends. What an account reserves and spends counts for its build's account, too; both must cover it. */
export const accountSchema = z.strictObject({
  /** The id of a build, a run, or anything else that spends. */
  id: name,
  build: buildIdSchema.nullable(),
  task: name.nullable().default(null),
  attempt: attemptIdSchema.nullable().default(null),
  agent: name.nullable().default(null),
  gate: name.nullable().default(null),
  budgetMicroUsd: microUsd,
});
export type Account = Readonly<z.input<typeof accountSchema>>;

/** What a reservation for a sandbox covers, as time that it runs. It does not run while it sleeps or is stopped. */
export const computeTermsSchema = z.strictObject({
  /** Of the sandbox. */
  provider: name,
  /** How long it had run before, and how long it may have run at the end of what is reserved. */
  fromMs: z.int().min(0),
  untilMs: z.int().min(0),
  microUsdPerMs: z.number().min(0),
});
export type ComputeTerms = Readonly<z.output<typeof computeTermsSchema>>;

export const reservationSchema = z.strictObject({
  /** Unique among all reservations. */
  request: name,
  account: name,
  /** The process that will settle it. */
  holder: name,
  kind: z.enum(["model", "compute"]),
  microUsd,
  /** Of compute whose use can be found out later, by whoever settles it. Null: it is the holder's knowledge alone. */
  terms: computeTermsSchema.nullable().default(null),
  /** The sandbox, once there is one: see `place`. */
  sandbox: name.nullable().default(null),
});
export type Reservation = Readonly<z.input<typeof reservationSchema>>;

export const settlementSchema = z.strictObject({
  request: name,
  microUsd,
  /** Provider of the model or the sandbox. */
  provider: name,
  end: z.enum(["complete", "truncated", "cut", "failed", "lost"]),
  /** The provider reported no cost: the figure is an estimate. */
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

/** A reservation for a sandbox that is not settled. */
export interface OpenCompute {
  readonly request: string;
  readonly account: string;
  readonly build: BuildId | null;
  readonly holder: string;
  /** Null: it is not known whether the sandbox was made. */
  readonly sandbox: string | null;
  readonly terms: ComputeTerms;
  readonly reservedMicroUsd: number;
  readonly reservedAt: number;
}

export const costDimensions = ["task", "attempt", "agent", "gate", "provider"] as const;
export type CostDimension = (typeof costDimensions)[number];

export interface Cost {
  /** Null: not attributed. */
  readonly of: string | null;
  readonly spentMicroUsd: number;
  readonly reservedMicroUsd: number;
  readonly requests: number;
}

/** Money is reserved before it is spent. Refuses what is not covered, and accounts that nobody opened. */
export interface BuildLedger {
  /** For an account that exists, only a higher budget counts. */
  open(account: Account): Promise<void>;
  /**
   * False: the account or its build cannot cover it, and nothing is reserved. The same again is true; with other
   * content it fails with `idempotency_conflict`.
   */
  reserve(reservation: Reservation): Promise<boolean>;
  /** Adds to a reservation that is not settled. */
  extend(request: string, microUsd: number): Promise<boolean>;
  /** Replaces the reservation by what was spent, once. False: it is settled or unknown, and nothing changes. */
  settle(settlement: LedgerSettlement): Promise<boolean>;
  /** Names the sandbox that a reservation is for. */
  place(request: string, sandbox: string): Promise<void>;
  /** Reservations for sandboxes that are not settled, the oldest first: all, or those whose requests begin so. */
  openCompute(prefix?: string): Promise<readonly OpenCompute[]>;
  /** Who pays for a sandbox. Undefined: nobody. */
  payerOf(sandbox: string): Promise<string | undefined>;
  /** What has been settled for a sandbox's time. */
  spentOn(sandbox: string): Promise<number>;
  /**
   * Settles the reservations of a dead process, for one build or for all, at their whole amount: it may have been
   * spent. Leaves those with terms: what they cost can be found out. Returns how many there were.
   */
  abandon(holder: string, build?: BuildId): Promise<number>;
  balance(account: string): Promise<AccountBalance>;
  /** What can still be reserved, in micro-USD: the rest of the account or of its build, whichever is less. */
  left(account: string): Promise<number>;
  /** The cost of a build by one dimension. Each dimension adds up to the same total. */
  costs(build: BuildId, dimension: CostDimension): Promise<readonly Cost[]>;
}
