import { addUsage, type ErrorCode, noUsage, type Usage } from "@slipway/contract";
import type { Settlement } from "../ports/ports.ts";

/** What one provider has done since this gateway started. */
export interface ProviderHealth {
  readonly provider: string;
  readonly requests: number;
  readonly inFlight: number;
  readonly ends: Readonly<Record<ResponseEnd, number>>;
  readonly retries: number;
  readonly usage: Usage;
  readonly microUsd: number;
  readonly lastErrorCode: ErrorCode | undefined;
}

/** How a response ended, as seen by this process. */
export type ResponseEnd = Exclude<Settlement["end"], "lost">;

export interface Health {
  begin(provider: string): void;
  retried(provider: string): void;
  end(provider: string, ended: Ended): void;
  snapshot(): readonly ProviderHealth[];
}

interface Ended {
  readonly end: ResponseEnd;
  readonly usage: Usage;
  readonly microUsd: number;
  readonly code: ErrorCode | undefined;
}

export function createHealth(providers: readonly string[]): Health {
  const counters = new Map(providers.map((provider) => [provider, newCounters(provider)]));
  const change = (provider: string, update: (old: ProviderHealth) => Partial<ProviderHealth>) => {
    const old = counters.get(provider) ?? newCounters(provider);
    counters.set(provider, { ...old, ...update(old) });
  };
  return {
    begin: (provider) => change(provider, (old) => ({ requests: old.requests + 1, inFlight: old.inFlight + 1 })),
    retried: (provider) => change(provider, (old) => ({ retries: old.retries + 1 })),
    end: (provider, { end, usage, microUsd, code }) =>
      change(provider, (old) => ({
        inFlight: old.inFlight - 1,
        ends: { ...old.ends, [end]: old.ends[end] + 1 },
        usage: addUsage(old.usage, usage),
        microUsd: old.microUsd + microUsd,
        lastErrorCode: code ?? old.lastErrorCode,
      })),
    snapshot: () => [...counters.values()],
  };
}

function newCounters(provider: string): ProviderHealth {
  const ends = { complete: 0, truncated: 0, cut: 0, failed: 0 };
  return {
    provider,
    requests: 0,
    inFlight: 0,
    ends,
    retries: 0,
    usage: noUsage,
    microUsd: 0,
    lastErrorCode: undefined,
  };
}
