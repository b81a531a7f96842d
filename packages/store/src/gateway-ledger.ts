import type { RunId, Usage } from "@slipway/contract";
import type { AccountBalance, BuildLedger, LedgerSettlement } from "@slipway/engine";

/** A settlement as the gateway makes it. */
interface ModelSettlement {
  readonly request: string;
  readonly run: RunId;
  readonly role: string;
  readonly model: string;
  readonly usage: Usage;
  readonly microUsd: number;
  readonly estimated: boolean;
  readonly end: LedgerSettlement["end"];
}

/**
 * The gateway's view of the ledger: a run is an account. Whoever starts a run opens its account before the gateway does,
 * and names its build, task and agent. `holder` is this process.
 */
export function createGatewayLedger(ledger: BuildLedger, holder: string) {
  return {
    open: (run: RunId, budgetMicroUsd: number): Promise<void> => ledger.open({ id: run, build: null, budgetMicroUsd }),
    reserve: (entry: { readonly request: string; readonly run: RunId; readonly microUsd: number }): Promise<boolean> =>
      ledger.reserve({ request: entry.request, account: entry.run, holder, kind: "model", microUsd: entry.microUsd }),
    extend: (request: string, microUsd: number): Promise<boolean> => ledger.extend(request, microUsd),
    async settle({ run: _, ...settlement }: ModelSettlement): Promise<void> {
      await ledger.settle({ ...settlement, provider: providerOf(settlement.model) });
    },
    balance: (run: RunId): Promise<AccountBalance> => ledger.balance(run),
    left: (run: RunId): Promise<number> => ledger.left(run),
  };
}

/** Models are named `provider/model`. */
function providerOf(model: string): string {
  return model.split("/", 1)[0] || "unknown";
}
