import type { BuildId } from "@slipway/contract";
import type { Account, LedgerSettlement, NewEvent, Reservation, Store } from "@slipway/engine";

/** What a simulated sandbox tells its host, in this order. To tell it again changes nothing. */
export interface Notice {
  readonly build: BuildId;
  readonly opens?: Account;
  readonly settles?: LedgerSettlement;
  readonly reports?: readonly NewEvent[];
  readonly reserves?: Reservation;
}

/** Where sandboxes report, and where the money is: the coordinator's end. */
export interface Host {
  take(notice: Notice): Promise<Taken>;
}

export interface Taken {
  /** Whether there was something to reserve, and money for it. */
  readonly reserved: boolean;
  /** Of the build. */
  readonly budgetMicroUsd: number;
}

export interface HostParts {
  readonly store: Pick<Store, "events" | "ledger">;
  /** Who settles what is reserved, where the sandboxes end with it. */
  readonly holder?: string | undefined;
  ring(build: BuildId): void;
}

export function createHost({ store: { events, ledger }, holder, ring }: HostParts): Host {
  return {
    async take({ build, opens, settles, reports = [], reserves }) {
      if (opens !== undefined) await ledger.open(opens);
      if (settles !== undefined) await ledger.settle(settles);
      if (reports.length > 0) await events.report(build, reports);
      // Read before it is asked for: one that is raised in between is asked again.
      const { budgetMicroUsd } = await ledger.balance(build);
      const reserved = reserves !== undefined && (await ledger.reserve({ ...reserves, ...(holder && { holder }) }));
      if (reports.some(({ type }) => !quiet.has(type))) ring(build);
      return { reserved, budgetMicroUsd };
    },
  };
}

/** Nothing is decided on them: they are read when the build wakes for something else. */
const quiet = new Set(["attempt.heard", "sandbox.changed", "checkpoint.made"]);
