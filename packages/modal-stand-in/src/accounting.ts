/** USD for a second of each resource. */
export interface Prices {
  /** Of a physical core. */
  readonly cpu: number;
  readonly memoryGib: number;
  /** By the name of the card. */
  readonly gpu: Readonly<Record<string, number>>;
}

/** Modal's list prices for sandboxes. A test that compares money gives the table that it uses itself. */
export const listPrices: Prices = {
  cpu: 0.00003942,
  memoryGib: 0.00000667,
  gpu: {
    T4: 0.000164,
    L4: 0.000222,
    A10: 0.000306,
    A10G: 0.000306,
    L40S: 0.000542,
    A100: 0.000583,
    "A100-40GB": 0.000583,
    "A100-80GB": 0.000694,
    H100: 0.001097,
    "H100!": 0.001097,
    H200: 0.001261,
    B200: 0.001736,
  },
};

/** What a request that names nothing gets, and pays. */
export const leastRequest = { cpu: 0.125, memoryMib: 128 } as const;

/** One sandbox's use. Requests count, not what its programs took of them. */
export interface Usage {
  readonly sandboxId: string;
  readonly name: string;
  readonly tags: Readonly<Record<string, string>>;
  readonly cpu: number;
  readonly memoryMib: number;
  readonly gpu: { readonly type: string; readonly count: number } | null;
  readonly startedAtMs: number;
  /** Null while it runs. */
  readonly endedAtMs: number | null;
  readonly seconds: number;
  /** By the price table, rounded up. */
  readonly microUsd: number;
}

export interface Accounting {
  readonly prices: Prices;
  usage(): Usage[];
  /** Of all sandboxes so far. */
  total(): { readonly seconds: number; readonly microUsd: number };
}

export type Metered = Omit<Usage, "seconds" | "microUsd">;

export function createAccounting(prices: Prices, now: () => number, metered: () => Iterable<Metered>): Accounting {
  const usage = () => [...metered()].map((one) => priced(one, prices, now()));
  return {
    prices,
    usage,
    total() {
      const all = usage();
      const sum = (of: (one: Usage) => number) => all.reduce((total, one) => total + of(one), 0);
      return { seconds: sum(({ seconds }) => seconds), microUsd: sum(({ microUsd }) => microUsd) };
    },
  };
}

function priced(one: Metered, prices: Prices, nowMs: number): Usage {
  const seconds = Math.max(0, (one.endedAtMs ?? nowMs) - one.startedAtMs) / 1000;
  const gpu = one.gpu === null ? 0 : (prices.gpu[one.gpu.type] ?? 0) * one.gpu.count;
  const usd = (one.cpu * prices.cpu + (one.memoryMib / 1024) * prices.memoryGib + gpu) * seconds;
  // Without the noise of binary fractions, which would round a whole number up.
  return { ...one, seconds, microUsd: Math.ceil(Number((usd * 1e6).toFixed(6))) };
}
