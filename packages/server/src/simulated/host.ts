import type { BuildId } from "@slipway/contract";
import type { Account, LedgerSettlement, NewEvent, Reservation, Store } from "@slipway/engine";

/** What a simulated sandbox tells its host, applied in this order. Idempotent. */
export interface Notice {
  readonly build: BuildId;
  readonly opens?: Account;
  readonly settles?: LedgerSettlement;
  readonly reports?: readonly NewEvent[];
  readonly reserves?: Reservation;
}

/** The coordinator's end: takes reports and manages money. */
export interface Host {
  take(notice: Notice): Promise<Taken>;
}

export interface Taken {
  /** Whether a reservation was requested and granted. */
  readonly reserved: boolean;
  /** The build's budget. */
  readonly budgetMicroUsd: number;
}

export interface HostParts {
  readonly store: Pick<Store, "events" | "ledger">;
  /** Holder of the reservations, for sandboxes that end with this process. */
  readonly holder?: string | undefined;
  ring(build: BuildId): void;
}

export function createHost({ store: { events, ledger }, holder, ring }: HostParts): Host {
  return {
    async take({ build, opens, settles, reports = [], reserves }) {
      if (opens !== undefined) await ledger.open(opens);
      if (settles !== undefined) await ledger.settle(settles);
      if (reports.length > 0) await events.report(build, reports);
      // Read before reserving: if the budget is raised in between, the reservation is retried.
      const { budgetMicroUsd } = await ledger.balance(build);
      const reserved = reserves !== undefined && (await ledger.reserve({ ...reserves, ...(holder && { holder }) }));
      if (reports.some(({ type }) => !quiet.has(type))) ring(build);
      return { reserved, budgetMicroUsd };
    },
  };
}

/** Events that need no decision: they are read when the build wakes for something else. */
const quiet = new Set(["attempt.heard", "sandbox.changed", "checkpoint.made"]);
