import { setTimeout as delay } from "node:timers/promises";
import type { StatusName } from "./refuse.ts";

/** Orders for what comes. Methods are named as on the wire, for instance `SandboxCreateV2`; `*` is every method. */
export interface FaultOrders {
  /** The next calls of a method answer this. With `retryAfterSeconds` the client is told when to try again, and obeys. */
  refuse(method: string, refusal: Refusal): void;
  /** Cuts all connections in the next calls of a method: before anything is done, or when it is done but not answered. */
  cut(method: string, when: "before" | "after", times?: number): void;
  /** While true, tunnels lose what is sent through them, and stay open. Then those that have lost something are cut. */
  stallTunnels(stalled: boolean): void;
  /** Every call, and every piece of a tunnel's stream in each direction, takes this much longer. */
  setLatency(latency: { callMs?: number; tunnelMs?: number }): void;
  /** Each image build takes this much longer. */
  slowBuilds(byMs: number): void;
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
export interface FaultPlan extends FaultOrders {
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
