import { type KeptCheck, SlipwayError, type Surface } from "@slipway/contract";
import type { Checker } from "../checker.ts";
import { measureJob, type ToldVisit, visitJob } from "./browser-job.ts";
import { makeCalls } from "./calls.ts";
import { browserJob, makeExchanges, performanceJob } from "./earlier.ts";
import { appOrigin, type Connect, createHttpClient, usualExchangeLimits } from "./exchange.ts";
import { measureOutcome, type Outcome, visitOutcome } from "./outcome.ts";

export interface Asking {
  readonly surface: Surface;
  readonly connect: Connect;
  /** Undefined: no check needs one. */
  readonly checker: Checker | undefined;
  readonly signal: AbortSignal;
  /** How long a step waits for what is not there. */
  readonly patienceMs?: number | undefined;
}

/** Makes one check on an app that runs. Throws if it cannot be made: that says nothing about the app. */
export async function make(check: KeptCheck, asking: Asking): Promise<Outcome> {
  const { surface, connect, checker, signal, patienceMs } = asking;
  if (check.type === "http" || check.type === "calls") {
    const client = createHttpClient(connect, appOrigin, usualExchangeLimits);
    const ask: Parameters<typeof makeCalls>[2] = (exchange) => client.exchange(exchange, signal);
    return check.type === "http" ? await makeExchanges(check, ask) : await makeCalls(surface, check, ask);
  }
  if (checker === undefined) throw new SlipwayError("internal", "there is no checker");
  switch (check.type) {
    case "visit":
      return await walk(checker, visitJob(surface, check), patienceMs);
    case "browser":
      return await walk(checker, browserJob(check), patienceMs);
    default: {
      const job = check.type === "measure" ? measureJob(surface, check) : performanceJob(check);
      return measureOutcome({ ...job, atMost: check.atMost }, await checker.check({ ...job, patienceMs }));
    }
  }
}

export function needsChecker({ type }: KeptCheck): boolean {
  return type !== "http" && type !== "calls";
}

async function walk(checker: Checker, visit: ToldVisit, patienceMs: number | undefined): Promise<Outcome> {
  const { viewport } = visit;
  const steps = visit.steps.map(({ step }) => step);
  return visitOutcome(visit, await checker.check({ type: "visit", viewport, steps, patienceMs }));
}
