import type { EgressRefusal } from "@slipway/contract";

export interface Refusal {
  /** Printable ASCII, at most 253 characters. `*`: several hosts, when there were too many refusals to name each. */
  readonly host: string;
  /** 0 when `host` is `*` or the request named no port. */
  readonly port: number;
  readonly rule: EgressRefusal;
  readonly count: number;
}

export interface RefusalLedger {
  add(host: string, port: number, rule: EgressRefusal): void;
  /** Reports what is held. */
  flush(): void;
}

/**
 * Reports each refusal at once, within bounds. A repeated refusal is reported once more at the end of its window, with
 * the count of the rest. Past `perWindow` different refusals, only counts them by rule.
 */
export function createRefusalLedger(
  report: (refusal: Refusal) => void,
  windowMs = 1000,
  perWindow = 20,
): RefusalLedger {
  const held = new Map<string, Refusal>();
  const named = new Set<string>();
  let timer: NodeJS.Timeout | undefined;

  const hold = (host: string, port: number, rule: EgressRefusal) => {
    const key = `${host} ${port} ${rule}`;
    held.set(key, { host, port, rule, count: (held.get(key)?.count ?? 0) + 1 });
  };
  const flush = () => {
    clearTimeout(timer);
    timer = undefined;
    const refusals = [...held.values()];
    held.clear();
    named.clear();
    for (const refusal of refusals) report(refusal);
  };
  return {
    add: (rawHost, port, rule) => {
      const host = printable(rawHost);
      const key = `${host} ${port} ${rule}`;
      timer ??= setTimeout(flush, windowMs).unref();
      if (named.has(key)) hold(host, port, rule);
      else if (named.size >= perWindow) hold("*", 0, rule);
      else {
        named.add(key);
        report({ host, port, rule, count: 1 });
      }
    },
    flush,
  };
}

/** The sandbox chooses these bytes, which end up in logs and terminals. */
function printable(host: string): string {
  return host.slice(0, 253).replaceAll(/[^\x21-\x7e]/g, "?") || "?";
}
