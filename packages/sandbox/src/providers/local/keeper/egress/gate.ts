import type { Socket } from "node:net";
import type { EgressRefusal, InjectedSecret } from "@slipway/contract";
import { formatAddress, parseAddress } from "./address.ts";
import { type Dial, decide, decideAddresses, decideHost, type Refused, type Target } from "./decide.ts";
import { type DialAddresses, DialError, type DialFailure } from "./dial.ts";
import { parseHost } from "./host.ts";
import type { Resolve } from "./lookup.ts";
import type { Rules, Scheme } from "./rules.ts";

export type Reached =
  | { readonly outcome: "open"; readonly connection: Socket }
  | { readonly outcome: "refused"; readonly rule: EgressRefusal }
  | { readonly outcome: "failed"; readonly failure: DialFailure }
  /** The sandbox has as many connections as it may. */
  | { readonly outcome: "busy" };

/** The only place that connects to the outside. */
export interface Gate {
  reach(target: Target, signal: AbortSignal): Promise<Reached>;
  /** Headers to inject for the target over this scheme. */
  secretsFor(target: Target, scheme: Scheme): readonly InjectedSecret[];
  /** Applies at once. Cuts connections that the new rules do not allow. */
  setRules(rules: Rules): void;
  readonly open: number;
  close(): void;
}

export interface GateOptions {
  readonly rules: Rules;
  readonly resolve: Resolve;
  readonly dial: DialAddresses;
  readonly ownAddresses: () => readonly string[];
  readonly connectMs: number;
  readonly connections: number;
  readonly onRefused: (target: Target, rule: EgressRefusal) => void;
}

export function createGate(options: GateOptions): Gate {
  const { resolve, dial, ownAddresses, connectMs, connections, onRefused } = options;
  const held = new Map<Socket, { target: Target; address: string }>();
  let { rules } = options;
  let pending = 0;

  const judge = async (target: Target): Promise<Dial | Refused> => {
    const decision = decideHost(rules, target, ownAddresses());
    if (decision.verdict !== "lookup") return decision;
    return decideAddresses(rules, target, await resolve(decision.name), ownAddresses());
  };
  const refused = (target: Target, rule: EgressRefusal): Reached => {
    onRefused(target, rule);
    return { outcome: "refused", rule };
  };
  const attempt = async (target: Target, signal: AbortSignal): Promise<Reached> => {
    const decision = await judge(target);
    if (decision.verdict === "refuse") return refused(target, decision.rule);
    const connection = await dial(decision.addresses, target.port, connectMs, signal);
    const address = normal(connection.remoteAddress);
    // The policy may have changed meanwhile.
    const verdict = decide(rules, target, [address], ownAddresses());
    if (verdict.verdict === "refuse") {
      connection.destroy();
      return refused(target, verdict.rule);
    }
    held.set(connection, { target, address });
    connection.once("close", () => held.delete(connection));
    return { outcome: "open", connection };
  };
  return {
    get open() {
      return held.size;
    },
    reach: async (target, signal) => {
      if (held.size + pending >= connections) return { outcome: "busy" };
      pending += 1;
      try {
        return await attempt(target, signal);
      } catch (error) {
        if (error instanceof DialError) return { outcome: "failed", failure: error.failure };
        throw error;
      } finally {
        pending -= 1;
      }
    },
    secretsFor: (target, scheme) => secretsOf(rules, target, scheme),
    setRules: (next) => {
      const before = rules;
      rules = next;
      for (const [connection, { target, address }] of held) {
        const isAllowed = decide(next, target, [address], ownAddresses()).verdict === "dial";
        const isSameTreatment = (["https", "http"] as const).every((scheme) =>
          sameSecrets(secretsOf(before, target, scheme), secretsOf(next, target, scheme)),
        );
        if (!isAllowed || !isSameTreatment) connection.destroy();
      }
    },
    close: () => {
      for (const connection of held.keys()) connection.destroy();
    },
  };
}

function secretsOf(rules: Rules, { host, port }: Target, scheme: Scheme): readonly InjectedSecret[] {
  const parsed = parseHost(host);
  return parsed?.kind === "name" ? rules.secretsFor(parsed.name, port, scheme) : [];
}

function sameSecrets(a: readonly InjectedSecret[], b: readonly InjectedSecret[]): boolean {
  return a.length === b.length && a.every(({ header, value }, i) => b[i]?.header === header && b[i].value === value);
}

function normal(remoteAddress: string | undefined): string {
  const address = parseAddress(remoteAddress ?? "");
  return address === undefined ? "" : formatAddress(address);
}
