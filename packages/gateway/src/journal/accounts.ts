import { runIdSchema, usageSchema } from "@slipway/contract";
import { z } from "zod";
import type { Balance } from "../ports/ports.ts";

const microUsd = z.int().min(0);
const request = z.string().min(1);

export const ledgerEntrySchema = z.discriminatedUnion("type", [
  z.strictObject({ type: z.literal("open"), run: runIdSchema, budgetMicroUsd: microUsd }),
  z.strictObject({ type: z.literal("reserve"), request, run: runIdSchema, microUsd }),
  z.strictObject({ type: z.literal("extend"), request, microUsd }),
  z.strictObject({
    type: z.literal("settle"),
    request,
    run: runIdSchema,
    role: z.string(),
    model: z.string(),
    usage: usageSchema,
    microUsd,
    estimated: z.boolean(),
    end: z.enum(["complete", "truncated", "cut", "failed", "lost"]),
  }),
]);
export type LedgerEntry = z.output<typeof ledgerEntrySchema>;

type Run = z.output<typeof runIdSchema>;
export interface Reservation {
  readonly run: Run;
  readonly microUsd: number;
}

/** The sum of the entries so far. */
export interface Accounts {
  balance(run: Run): Balance;
  /** Unsettled reservations. */
  readonly reservations: ReadonlyMap<string, Reservation>;
  apply(entry: LedgerEntry): void;
}

export function createAccounts(): Accounts {
  const balances = new Map<Run, Balance>();
  const reservations = new Map<string, Reservation>();
  const balance = (run: Run) => balances.get(run) ?? nothing;
  const setAside = (id: string, run: Run, amount: number) => {
    reservations.set(id, { run, microUsd: (reservations.get(id)?.microUsd ?? 0) + amount });
    const old = balance(run);
    balances.set(run, { ...old, reservedMicroUsd: old.reservedMicroUsd + amount });
  };
  return {
    balance,
    reservations,
    apply(entry) {
      switch (entry.type) {
        case "open": {
          const old = balance(entry.run);
          balances.set(entry.run, { ...old, budgetMicroUsd: Math.max(old.budgetMicroUsd, entry.budgetMicroUsd) });
          return;
        }
        case "reserve":
          return setAside(entry.request, entry.run, entry.microUsd);
        case "extend": {
          const open = reservations.get(entry.request);
          if (open !== undefined) setAside(entry.request, open.run, entry.microUsd);
          return;
        }
        case "settle": {
          const open = reservations.get(entry.request);
          if (open === undefined) return;
          reservations.delete(entry.request);
          const old = balance(open.run);
          balances.set(open.run, {
            ...old,
            reservedMicroUsd: old.reservedMicroUsd - open.microUsd,
            spentMicroUsd: old.spentMicroUsd + entry.microUsd,
          });
        }
      }
    },
  };
}

const nothing: Balance = { budgetMicroUsd: 0, spentMicroUsd: 0, reservedMicroUsd: 0 };
