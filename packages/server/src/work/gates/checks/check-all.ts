import { checkSchema, hasCode, type KeptCheck, SlipwayError, type Surface } from "@slipway/contract";
import { devServerPort, lastWords, type Sandbox, type SandboxProvider, startDevServer } from "@slipway/sandbox";
import { endOf } from "../../step-words.ts";
import { type Checker, openChecker } from "../checker.ts";
import type { Wanted } from "../demands.ts";
import { shown } from "../findings.ts";
import { measureJob, type ToldVisit, visitJob } from "./browser-job.ts";
import { makeCalls } from "./calls.ts";
import { browserJob, makeExchanges, performanceJob } from "./earlier.ts";
import { appOrigin, type Connect, createHttpClient, usualExchangeLimits } from "./exchange.ts";
import { measureOutcome, type Outcome, visitOutcome } from "./outcome.ts";

export interface Checking {
  readonly provider: Pick<SandboxProvider, "create">;
  /** Has the candidate's files. */
  readonly sandbox: Sandbox;
  /** For the checker's sandboxes. */
  readonly labels: Readonly<Record<string, string>>;
  readonly signal: AbortSignal;
  /** How long the app may take until its first answer. */
  readonly readyMs?: number;
  /** How long a page may keep a browser busy per check. */
  readonly checkMs?: number;
}

export interface Checked {
  /** Id of the criterion or workflow. */
  readonly id: string;
  readonly satisfied: boolean;
  readonly text: string;
  /** Where it failed. Null: it is satisfied, or its check names things itself and is never disputed. */
  readonly failedAt: FailedAt | null;
}

/** By index: which check of the demand, and which of its steps. */
export interface FailedAt {
  readonly check: number;
  readonly step: number;
}

/** Why the app does not run, or the outcome of each demand. */
export type AllChecked = { readonly failure: string } | { readonly checked: readonly Checked[] };

/** Starts the app and makes the checks of each demand, up to its first failure. All of them see the same app. */
export async function checkAll(checking: Checking, { surface, demands }: Wanted): Promise<AllChecked> {
  await using opened = new AsyncDisposableStack();
  const needsBrowser = demands.some(({ checks }) => checks.some(({ type }) => type !== "http" && type !== "calls"));
  const connect: Connect = (signal) => checking.sandbox.connect(devServerPort, { signal });
  const [started, made] = await Promise.allSettled([
    startApp(checking),
    needsBrowser ? openChecker({ ...checking, connect }) : undefined,
  ]);
  const checker = made.status === "fulfilled" ? opened.use(made.value) : undefined;
  if (started.status === "rejected") throw started.reason;
  if (made.status === "rejected") throw made.reason;
  const app = started.value;
  if ("failure" in app) return app;
  const ask = { surface, connect, checker, signal: checking.signal };
  const checked: Checked[] = [];
  for (const { id, checks } of demands) {
    const outcomes: Outcome[] = [];
    let failedAt: FailedAt | null = null;
    let satisfied = true;
    for (const check of checks) {
      const outcome = await make(check, ask);
      outcomes.push(outcome);
      if (outcome.ok) continue;
      satisfied = false;
      if (checkSchema.safeParse(check).success) failedAt = { check: outcomes.length - 1, step: outcome.step ?? 0 };
      // Throws if the whole sandbox is gone, even before that is recorded: then the check says nothing about the app.
      await checking.sandbox.files.stat("/");
      const ended = await app.ended();
      if (ended !== undefined) return { failure: `${outcome.text}\n${ended}` };
      break;
    }
    checked.push({ id, satisfied, text: outcomes.map(({ text }) => text).join("\n"), failedAt });
  }
  return { checked };
}

interface Asking {
  readonly surface: Surface;
  readonly connect: Connect;
  /** Undefined: no check needs one. */
  readonly checker: Checker | undefined;
  readonly signal: AbortSignal;
}

async function make(check: KeptCheck, { surface, connect, checker, signal }: Asking): Promise<Outcome> {
  if (check.type === "http" || check.type === "calls") {
    const client = createHttpClient(connect, appOrigin, usualExchangeLimits);
    const ask: Parameters<typeof makeCalls>[2] = (exchange) => client.exchange(exchange, signal);
    return check.type === "http" ? await makeExchanges(check, ask) : await makeCalls(surface, check, ask);
  }
  if (checker === undefined) throw new SlipwayError("internal", "there is no checker");
  switch (check.type) {
    case "visit":
      return await walk(checker, visitJob(surface, check));
    case "browser":
      return await walk(checker, browserJob(check));
    default: {
      const job = check.type === "measure" ? measureJob(surface, check) : performanceJob(check);
      return measureOutcome({ ...job, atMost: check.atMost }, await checker.check(job));
    }
  }
}

async function walk(checker: Checker, visit: ToldVisit): Promise<Outcome> {
  const { viewport, steps } = visit;
  return visitOutcome(visit, await checker.check({ type: "visit", viewport, steps: steps.map(({ step }) => step) }));
}

const maxWordsCharacters = 6000;
/** Codes of a dev server that does not come up. */
const failuresOfApp = ["exec_not_started", "exec_ended", "connection_refused"] as const;

/** Starts the candidate's app, or says why it does not run. `ended` describes the app's end once it has ended. */
async function startApp({
  sandbox,
  readyMs,
  signal,
}: Checking): Promise<{ readonly failure: string } | { ended(): Promise<string | undefined> }> {
  try {
    const { exec } = await startDevServer(sandbox, { signal, ...(readyMs !== undefined && { readyMs }) });
    return {
      async ended() {
        const exit = (await sandbox.execs()).find(({ id }) => id === exec.id)?.exit ?? null;
        if (exit === null) return undefined;
        return shown(`The app ${endOf(exit)}: ${await lastWords(sandbox, exec)}`, maxWordsCharacters);
      },
    };
  } catch (error) {
    signal.throwIfAborted();
    if (!failuresOfApp.some((code) => hasCode(error, code))) throw error;
    return { failure: shown((error as Error).message, maxWordsCharacters) };
  }
}
