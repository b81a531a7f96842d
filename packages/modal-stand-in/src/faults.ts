import { setTimeout as delay } from "node:timers/promises";
import type { StatusName } from "./refuse.ts";

/** What goes wrong, on order. Methods are named as on the wire, for instance `SandboxCreateV2`; `*` is every method. */
export interface Faults {
  /** The next calls of a method answer this. With `retryAfterSeconds` the client is told when to try again, and obeys. */
  refuse(method: string, refusal: Refusal): void;
  /** Cuts all connections in the next calls of a method: before anything is done, or when it is done but not answered. */
  cut(method: string, when: "before" | "after", times?: number): void;
  /** Cuts all connections now. */
  cutNow(): void;
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
export interface FaultPlan extends Omit<Faults, "vanish" | "cutNow" | "revokeTokens" | "setTokenLifetime"> {
  /** The order for this call, taken from the list. */
  take(method: string): Order["fault"] | undefined;
  waitAsCall(): Promise<void>;
  waitAsBuild(): Promise<void>;
  readonly tunnelMs: number;
}

export function createFaultPlan(): FaultPlan {
  let orders: Order[] = [];
  let latency = { callMs: 0, tunnelMs: 0 };
  let buildMs = 0;
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
    clear() {
      orders = [];
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
  };
}
