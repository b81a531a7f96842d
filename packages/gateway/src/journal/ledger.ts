import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { noUsage, type RunId, SlipwayError } from "@slipway/contract";
import { takeLock } from "@slipway/host";
import type { Ledger } from "../ports/ports.ts";
import { type Accounts, createAccounts, type LedgerEntry, ledgerEntrySchema } from "./accounts.ts";
import { openLines } from "./lines.ts";

export interface OpenLedger extends Ledger, AsyncDisposable {}

/**
 * The books in `directory/ledger.jsonl`, held by one process at a time. Settles what a dead gateway had reserved as
 * `lost`, at the reserved amount: the endpoint may have billed it.
 */
export async function openLedger(directory: string): Promise<OpenLedger> {
  mkdirSync(directory, { recursive: true, mode: 0o700 });
  const lock = await takeLock(join(directory, "ledger.lock"));
  if (lock === undefined) {
    throw new SlipwayError("provider_unavailable", `another process has the ledger in ${directory}`);
  }
  try {
    const accounts = createAccounts();
    const path = join(directory, "ledger.jsonl");
    const lines = openLines(path, (entry, line) => accounts.apply(parseEntry(entry, path, line)));
    const record = (entry: LedgerEntry) => {
      lines.append(entry);
      accounts.apply(entry);
    };
    for (const [request, { run, microUsd }] of [...accounts.reservations]) record(lostEntry(request, run, microUsd));
    return {
      ...createLedger(accounts, record),
      async [Symbol.asyncDispose]() {
        lines.close();
        lock[Symbol.dispose]();
      },
    };
  } catch (error) {
    lock[Symbol.dispose]();
    throw error;
  }
}

/** Books in memory only. */
export function createMemoryLedger(): Ledger {
  const accounts = createAccounts();
  return createLedger(accounts, accounts.apply);
}

/** `record` makes an entry durable and applies it, with no await between reading a balance and changing it. */
function createLedger(accounts: Accounts, record: (entry: LedgerEntry) => void): Ledger {
  const left = (run: RunId) => {
    const { budgetMicroUsd, spentMicroUsd, reservedMicroUsd } = accounts.balance(run);
    return budgetMicroUsd - spentMicroUsd - reservedMicroUsd;
  };
  return {
    async open(run, budgetMicroUsd) {
      if (budgetMicroUsd > accounts.balance(run).budgetMicroUsd) record({ type: "open", run, budgetMicroUsd });
    },
    async reserve(entry) {
      if (accounts.reservations.has(entry.request)) throw new Error(`request ${entry.request} is reserved already`);
      if (entry.microUsd > left(entry.run)) return false;
      record({ type: "reserve", ...entry });
      return true;
    },
    async extend(request, microUsd) {
      const open = accounts.reservations.get(request);
      if (open === undefined || microUsd > left(open.run)) return false;
      record({ type: "extend", request, microUsd });
      return true;
    },
    async settle(settlement) {
      if (accounts.reservations.has(settlement.request)) record({ type: "settle", ...settlement });
    },
    balance: async (run) => accounts.balance(run),
    left: async (run) => Math.max(0, left(run)),
  };
}

function parseEntry(entry: unknown, path: string, line: number): LedgerEntry {
  const parsed = ledgerEntrySchema.safeParse(entry);
  if (parsed.success) return parsed.data;
  throw new SlipwayError("internal", `line ${line} of ${path} is not a ledger entry: ${parsed.error.message}`);
}

function lostEntry(request: string, run: RunId, microUsd: number): LedgerEntry {
  return { type: "settle", request, run, role: "", model: "", usage: noUsage, microUsd, estimated: true, end: "lost" };
}
