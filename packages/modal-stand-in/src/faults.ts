import { setTimeout as delay } from "node:timers/promises";
import type { Front } from "./front.ts";
import type { StatusName } from "./refuse.ts";
import { failed } from "./sandboxes/sandbox.ts";
import type { Sandboxes } from "./sandboxes/sandboxes.ts";
import type { Tokens } from "./tokens.ts";

/** What goes wrong, on order. Methods are named as on the wire, for instance `SandboxCreateV2`; `*` is every method. */
export interface Faults {
  /** The next calls of a method answer this. With `retryAfterSeconds` the client is told when to try again, and obeys. */
  refuse(method: string, refusal: Refusal): void;
  /** Cuts all connections in the next calls of a method: before anything is done, or when it is done but not answered. */
  cut(method: string, when: "before" | "after", times?: number): void;
  /** Cuts all connections to the server now. */
  cutNow(): void;
  /** Cuts the connections through the tunnels of one sandbox, or of all. */
  cutTunnels(sandboxId?: string): void;
  /** While true, tunnels lose what is sent through them, and stay open. Then those that have lost something are cut. */
  stallTunnels(stalled: boolean): void;
  /** Every call, and every piece of a tunnel's stream in each direction, takes this much longer. */
  setLatency(latency: { callMs?: number; tunnelMs?: number }): void;
  /** Each image build takes this much longer. */
  slowBuilds(byMs: number): void;
  /** Refuses the session and router tokens that clients have, which do not look expired to them. */
  revokeTokens(): void;
  /** Tokens signed from now on expire after this long; null: after an hour. Clients fetch new ones. */
  setTokenLifetime(seconds: number | null): void;
  /**
   * A sandbox is gone without having ended. Forgotten: the server knows it no longer. Failed: it ended with an internal
   * failure.
   */
  vanish(sandboxId: string, how?: "forgotten" | "failed"): Promise<void>;
  /** Takes back all orders. What has vanished stays gone. */
  clear(): void;
}

export interface Refusal {
  readonly code: StatusName;
  readonly message?: string;
  readonly times?: number;
  readonly retryAfterSeconds?: number;
}

interface Order {
  readonly method: string;
  readonly fault: { readonly refusal: Refusal } | { readonly cut: "before" | "after" };
  left: number;
}

/** The side that carries the orders out. */
export interface FaultPlan
  extends Pick<Faults, "refuse" | "cut" | "setLatency" | "slowBuilds" | "stallTunnels" | "clear"> {
  /** The order for this call, taken from the list. */
  take(method: string): Order["fault"] | undefined;
  waitAsCall(): Promise<void>;
  waitAsBuild(): Promise<void>;
  readonly tunnelMs: number;
  readonly tunnelsStalled: boolean;
}

export function createFaultPlan(): FaultPlan {
  let orders: Order[] = [];
  let latency = { callMs: 0, tunnelMs: 0 };
  let buildMs = 0;
  let tunnelsStalled = false;
  const wait = async (ms: number) => {
    if (ms > 0) await delay(ms);
  };
  return {
    refuse(method, refusal) {
      orders.push({ method, fault: { refusal }, left: refusal.times ?? 1 });
    },
    cut(method, when, times = 1) {
      orders.push({ method, fault: { cut: when }, left: times });
    },
    setLatency(given) {
      latency = { ...latency, ...given };
    },
    slowBuilds(byMs) {
      buildMs = byMs;
    },
    stallTunnels(stalled) {
      tunnelsStalled = stalled;
    },
    clear() {
      orders = [];
      tunnelsStalled = false;
      latency = { callMs: 0, tunnelMs: 0 };
      buildMs = 0;
    },
    take(method) {
      const order = orders.find((one) => one.method === method || one.method === "*");
      if (order === undefined) return undefined;
      order.left -= 1;
      if (order.left <= 0) orders = orders.filter((one) => one !== order);
      return order.fault;
    },
    waitAsCall: () => wait(latency.callMs),
    waitAsBuild: () => wait(buildMs),
    get tunnelMs() {
      return latency.tunnelMs;
    },
    get tunnelsStalled() {
      return tunnelsStalled;
    },
  };
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
