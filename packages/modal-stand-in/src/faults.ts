import type { FaultOrders, FaultPlan } from "./fault-plan.ts";
import type { Front } from "./front.ts";
import { failed } from "./sandboxes/sandbox.ts";
import type { Sandboxes } from "./sandboxes/sandboxes.ts";
import type { Tokens } from "./tokens.ts";

/** What goes wrong, on order. */
export interface Faults extends FaultOrders {
  /** Cuts all connections to the server now. */
  cutNow(): void;
  /** Cuts the connections through the tunnels of one sandbox, or of all. */
  cutTunnels(sandboxId?: string): void;
  /** Refuses the session and router tokens that clients have, which do not look expired to them. */
  revokeTokens(): void;
  /** Tokens signed from now on expire after this long; null: after an hour. Clients fetch new ones. */
  setTokenLifetime(seconds: number | null): void;
  /**
   * A sandbox is gone without having ended. Forgotten: the server knows it no longer. Failed: it ended with an internal
   * failure.
   */
  vanish(sandboxId: string, how?: "forgotten" | "failed"): Promise<void>;
}

interface Parts {
  readonly plan: FaultPlan;
  readonly front: Front;
  readonly tokens: Tokens;
  readonly sandboxes: Sandboxes;
}

export function createFaults({ plan, front, tokens, sandboxes }: Parts): Faults {
  const stallTunnels = (stalled: boolean) => {
    plan.stallTunnels(stalled);
    if (!stalled) for (const { tunnels } of sandboxes.all()) tunnels.cut("lossy");
  };
  return {
    refuse: plan.refuse,
    cut: plan.cut,
    setLatency: plan.setLatency,
    slowBuilds: plan.slowBuilds,
    stallTunnels,
    cutNow: front.cut,
    cutTunnels(id) {
      for (const sandbox of id === undefined ? sandboxes.all() : [sandboxes.get(id)]) sandbox.tunnels.cut();
    },
    revokeTokens: tokens.revoke,
    setTokenLifetime: tokens.setLifetime,
    async vanish(id, how = "forgotten") {
      await sandboxes.get(id).end(failed);
      if (how === "forgotten") sandboxes.forget(id);
    },
    clear() {
      stallTunnels(false);
      plan.clear();
      tokens.setLifetime(null);
    },
  };
}
