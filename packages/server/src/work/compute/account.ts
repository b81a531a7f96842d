import { type BuildId, buildIdSchema, microUsdPerUsd, SlipwayError } from "@slipway/contract";
import type { Account } from "@slipway/engine";

type Labels = Readonly<Record<string, string>>;

/** Of an account of compute. The build's own limit is the effective one. */
const budgetMicroUsd = 1_000_000_000 * microUsdPerUsd;

/** The account that pays for a sandbox, by the sandbox's labels. */
export function accountOf(labels: Labels): Account & { readonly build: BuildId } {
  const build = buildIdSchema.safeParse(labels["build"]).data;
  if (build === undefined) throw new SlipwayError("internal", "a sandbox that costs money belongs to no build");
  const [task, attempt, gate] = ["task", "attempt", "gate"].map((name) => labels[name] ?? null);
  const id = ["compute", build, task, attempt, gate].map((part) => part ?? "").join(":");
  return { id, build, task, attempt, gate, budgetMicroUsd } as Account & { readonly build: BuildId };
}

/** What a sandbox that is paid for has in its labels: every server that finds it can go on paying. */
export interface Payment {
  /** Begins the names of its reservations. */
  readonly key: string;
  readonly microUsdPerMs: number;
  /** How long it may live from each start. */
  readonly lifetimeMs: number;
  /** Null: none. Its forks have it, too. */
  readonly gpu: string | null;
}

const names = {
  key: "payment",
  microUsdPerMs: "payment-rate",
  lifetimeMs: "payment-life",
  gpu: "payment-gpu",
} as const;

export function labelsOf({ key, microUsdPerMs, lifetimeMs, gpu }: Payment): Labels {
  return {
    [names.key]: key,
    [names.microUsdPerMs]: String(microUsdPerMs),
    [names.lifetimeMs]: String(lifetimeMs),
    [names.gpu]: gpu ?? "",
  };
}

/** Undefined: it is not paid for here. */
export function paymentOf(labels: Labels): Payment | undefined {
  const key = labels[names.key];
  if (key === undefined) return undefined;
  return {
    key,
    microUsdPerMs: Number(labels[names.microUsdPerMs]),
    lifetimeMs: Number(labels[names.lifetimeMs]),
    gpu: labels[names.gpu] || null,
  };
}

export function keyOfRequest(request: string): string {
  return request.split(":", 1)[0] ?? "";
}
