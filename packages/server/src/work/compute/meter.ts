import { randomUUID } from "node:crypto";
import {
  type BuildId,
  createLanes,
  microUsdPerUsd,
  type SandboxId,
  type SandboxInfo,
  SlipwayError,
  sandboxIdSchema,
} from "@slipway/contract";
import type { BuildLedger, OpenCompute } from "@slipway/engine";
import type { SandboxProvider } from "@slipway/sandbox";
import { accountOf, keyOfRequest, type Payment, paymentOf } from "./account.ts";
import { aheadMsOf, costBetween, type Slices, settlementOfUnknown, settlementsOf } from "./decide.ts";
import { type RunTime, ranAt } from "./run-time.ts";
import { createRunTimes } from "./run-times.ts";

export interface MeterParts {
  readonly provider: Pick<SandboxProvider, "name" | "get" | "list" | "events">;
  readonly ledger: BuildLedger;
  /** This process in the ledger. */
  readonly holder: string;
  readonly slices: Slices;
  readonly clock: { now(): number };
  refused(refusal: Refusal): void;
  warn(message: string): void;
}

/** There is no money for the next time of a sandbox. */
export interface Refusal {
  readonly build: BuildId;
  /** The build's, before it was asked for. */
  readonly budgetMicroUsd: number;
  /** The same for the same time of the same sandbox. */
  readonly key: string;
}

/**
 * The book-keeping of paid sandboxes. What it must know it reads from the ledger and from the provider, so that a server
 * that dies anywhere leaves nothing that its successor can not settle.
 */
export interface Meter extends AsyncDisposable {
  /** Does one thing at a time with the sandboxes of a payment. */
  readonly inLine: <T>(payment: Pick<Payment, "key">, work: () => Promise<T>) => Promise<T>;
  /** Reserves the time before a start, and returns the name of the reservation. Fails with `budget_exhausted`. */
  reserveFirst(payment: Payment, labels: SandboxInfo["labels"], sandbox: SandboxId | null): Promise<string>;
  /** Covers at least this long from now. Fails with `budget_exhausted`. */
  cover(payment: Payment, info: SandboxInfo, forMs: number): Promise<void>;
  /** Settles a sandbox that rests or is gone. Call it in line. Never fails: what fails is done by the next look. */
  settle(payment: Pick<Payment, "key">, sandbox: SandboxId, isGone: boolean): Promise<void>;
  /** Looks at all that is reserved and all that runs: settles, extends, and tells what there is no money for. */
  look(): Promise<void>;
}

export function createMeter(parts: MeterParts): Meter {
  const { provider, ledger, holder, slices, clock, warn } = parts;
  const times = createRunTimes(provider);
  const lanes = createLanes<string>();
  const busy = new Map<string, number>();
  const inLine = async <T>(key: string, work: () => Promise<T>): Promise<T> => {
    busy.set(key, (busy.get(key) ?? 0) + 1);
    try {
      return await lanes.run(key, work);
    } finally {
      const left = (busy.get(key) ?? 1) - 1;
      if (left > 0) busy.set(key, left);
      else busy.delete(key);
    }
  };

  const reserve = async (
    { key, microUsdPerMs }: Payment,
    labels: SandboxInfo["labels"],
    { fromMs, untilMs, sandbox }: { fromMs: number; untilMs: number; sandbox: SandboxId | null },
  ) => {
    const account = accountOf(labels);
    await ledger.open(account);
    const request = `${key}:${randomUUID()}`;
    const microUsd = costBetween(microUsdPerMs, fromMs, untilMs);
    const terms = { provider: provider.name, fromMs, untilMs, microUsdPerMs };
    const asked = { request, account: account.id, holder, kind: "compute", microUsd, terms, sandbox } as const;
    return (await ledger.reserve(asked)) ? { request, microUsd } : { request: null, microUsd };
  };

  const openOf = async (key: string) => (await ledger.openCompute(`${key}:`)).toSorted(byTime);

  /** As far as the provider still knows it. */
  const timeOf = async (sandbox: SandboxId, entries: readonly OpenCompute[], info: SandboxInfo | undefined) => {
    const time = await times.of(sandbox);
    if (time !== undefined || info === undefined) return time;
    // Its first events are not kept any more.
    const since = info.state === "running" ? info.stateChangedAt : null;
    return { ms: entries[0]?.terms.fromMs ?? 0, since, isStarting: info.state === "creating" };
  };

  const settleAll = async (
    entries: readonly OpenCompute[],
    sandbox: SandboxId | null,
    info: SandboxInfo | undefined,
  ): Promise<RunTime | undefined> => {
    const time = sandbox === null ? undefined : await timeOf(sandbox, entries, info);
    const nowMs = clock.now();
    if (time !== undefined) {
      for (const settlement of settlementsOf(entries, time, nowMs)) await ledger.settle(settlement);
      return time;
    }
    for (const entry of entries) {
      const settlement = settlementOfUnknown(entry, { isOwn: entry.holder === holder, nowMs });
      if (settlement !== undefined) await ledger.settle(settlement);
    }
    return undefined;
  };

  /** Reserves until there is enough ahead, or tells that there is no money. */
  const extend = async (payment: Payment, info: SandboxInfo, time: RunTime, entries: readonly OpenCompute[]) => {
    const { labels, stateChangedAt, expiresAt } = info;
    const { build } = accountOf(labels);
    const { microUsdPerMs } = payment;
    const [nowMs, ranMs] = [clock.now(), ranAt(time, clock.now())];
    // One that was woken by its use rested before: until then all is settled.
    const paidMs = Math.max(time.ms, ...entries.map(({ terms }) => terms.untilMs));
    let coveredMs = paidMs - ranMs;
    const toLiveMs = stateChangedAt + payment.lifetimeMs - nowMs;
    const budget = (await ledger.balance(build)).budgetMicroUsd;
    const wantedMs = Math.min(toLiveMs, aheadMsOf(slices, microUsdPerMs, await ledger.left(build)));
    const untilMs = ranMs + wantedMs;
    if (untilMs > paidMs && coveredMs < wantedMs / 2) {
      const { request } = await reserve(payment, labels, { fromMs: paidMs, untilMs, sandbox: info.id });
      if (request !== null) coveredMs = wantedMs;
      else if (coveredMs < slices.firstMs / 2)
        parts.refused({ build, budgetMicroUsd: budget, key: `${payment.key}:${paidMs}` });
    }
    await live(info, coveredMs, expiresAt - nowMs);
  };

  /** Lets a sandbox live as long as it is paid for. */
  const live = async ({ id }: SandboxInfo, coveredMs: number, leftMs: number) => {
    if (coveredMs - marginMs > leftMs + marginMs) await (await provider.get(id)).keepAlive(coveredMs - marginMs);
  };

  const lookAt = async (key: string, info: SandboxInfo | undefined) => {
    const entries = await openOf(key);
    const noted = sandboxIdSchema.safeParse(entries.find(({ sandbox }) => sandbox !== null)?.sandbox).data;
    const sandbox = info?.id ?? noted ?? null;
    if (info !== undefined) {
      for (const entry of entries) if (entry.sandbox === null) await ledger.place(entry.request, info.id);
    }
    const time = await settleAll(entries, sandbox, info);
    if (info === undefined && sandbox !== null && time?.since === null) times.forget(sandbox);
    const payment = info && paymentOf(info.labels);
    if (payment === undefined || time?.since == null || info?.state !== "running") return;
    await extend(payment, info, time, entries);
  };

  const meter: Meter = {
    inLine: ({ key }, work) => inLine(key, work),
    async reserveFirst(payment, labels, sandbox) {
      const { build } = accountOf(labels);
      // Read before, so that a raise meanwhile counts.
      const { budgetMicroUsd } = await ledger.balance(build);
      const time = sandbox === null ? undefined : await times.of(sandbox);
      const fromMs = time === undefined ? 0 : ranAt(time, clock.now());
      const untilMs = fromMs + Math.min(slices.firstMs, payment.lifetimeMs);
      const { request, microUsd } = await reserve(payment, labels, { fromMs, untilMs, sandbox });
      if (request !== null) return request;
      parts.refused({ build, budgetMicroUsd, key: `${payment.key}:${fromMs}` });
      throw exhausted(provider.name, await ledger.left(build), microUsd);
    },
    async cover(payment, info, forMs) {
      const entries = await openOf(payment.key);
      const time = await timeOf(info.id, entries, info);
      const ranMs = time === undefined ? 0 : ranAt(time, clock.now());
      const fromMs = Math.max(time?.ms ?? 0, ...entries.map(({ terms }) => terms.untilMs));
      if (ranMs + forMs <= fromMs) return;
      const span = { fromMs, untilMs: ranMs + forMs, sandbox: info.id };
      const { request, microUsd } = await reserve(payment, info.labels, span);
      const { build } = accountOf(info.labels);
      if (request === null) throw exhausted(provider.name, await ledger.left(build), microUsd);
    },
    async settle({ key }, sandbox, isGone) {
      try {
        await settleAll(await openOf(key), sandbox, undefined);
        if (isGone) times.forget(sandbox);
      } catch (error) {
        warn(`${sandbox} is not settled yet: ${(error as Error).message}`);
      }
    },
    async look() {
      // Read first: of all that is reserved here, the list then has the sandboxes.
      const open = await ledger.openCompute();
      const infos = new Map<string, SandboxInfo>();
      for (const info of await provider.list()) {
        const payment = paymentOf(info.labels);
        if (payment !== undefined) infos.set(payment.key, info);
      }
      const keys = new Set([...infos.keys(), ...open.map(({ request }) => keyOfRequest(request))]);
      // A start may take long, and others need their next time meanwhile.
      const idle = [...keys].filter((key) => !busy.has(key));
      const failed = (error: Error) => warn(`cannot settle a sandbox yet: ${error.message}`);
      await Promise.all(idle.map((key) => inLine(key, () => lookAt(key, infos.get(key))).catch(failed)));
    },
    [Symbol.asyncDispose]: async () => await lanes.settled(),
  };
  return meter;
}

/** A sandbox ends a little before what is paid for does. */
const marginMs = 1000;

function byTime(one: OpenCompute, other: OpenCompute): number {
  return one.terms.fromMs - other.terms.fromMs || one.reservedAt - other.reservedAt;
}

function exhausted(provider: string, leftMicroUsd: number, neededMicroUsd: number): SlipwayError {
  const usd = (microUsd: number) => (microUsd / microUsdPerUsd).toFixed(4);
  const needed = `a sandbox of ${provider} needs ${usd(neededMicroUsd)} USD to begin`;
  return new SlipwayError("budget_exhausted", `the build has ${usd(leftMicroUsd)} USD left, and ${needed}`);
}
