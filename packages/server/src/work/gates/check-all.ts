import { type Check, SlipwayError } from "@slipway/contract";
import { devServerPort, type Sandbox, type SandboxProvider } from "@slipway/sandbox";
import { type App, appOrigin, startApp } from "./app.ts";
import { type Checker, openChecker } from "./checker.ts";
import type { Demand } from "./demands.ts";
import { type Connect, createHttpClient, usualExchangeLimits } from "./exchange.ts";
import { checkByHttp } from "./http-check.ts";
import type { Outcome } from "./outcome.ts";

export interface Checking {
  readonly provider: Pick<SandboxProvider, "create">;
  /** With the candidate's files. */
  readonly sandbox: Sandbox;
  /** Of the checker's sandbox. */
  readonly labels: Readonly<Record<string, string>>;
  readonly signal: AbortSignal;
  /** How long the app has to answer for the first time. */
  readonly readyMs?: number;
  /** How long a page may keep a browser busy with one check. */
  readonly checkMs?: number;
}

export interface Checked {
  /** Of the criterion or the workflow. */
  readonly id: string;
  readonly satisfied: boolean;
  readonly text: string;
}

/** In words, why the app does not run; or what was seen of each demand. */
export type AllChecked = { readonly failure: string } | { readonly checked: readonly Checked[] };

/** Starts the app and makes the checks of each demand, up to the first that fails. All of them see the same app. */
export async function checkAll(checking: Checking, demands: readonly Demand[]): Promise<AllChecked> {
  await using opened = new AsyncDisposableStack();
  const needsBrowser = demands.some(({ checks }) => checks.some(({ type }) => type !== "http"));
  const connect: Connect = (signal) => checking.sandbox.connect(devServerPort, { signal });
  const [started, made] = await Promise.allSettled([
    startApp(checking.sandbox, checking),
    needsBrowser ? openChecker({ ...checking, connect }) : undefined,
  ]);
  const checker = made.status === "fulfilled" ? opened.use(made.value) : undefined;
  if (started.status === "rejected") throw started.reason;
  if (made.status === "rejected") throw made.reason;
  const app = started.value;
  if ("failure" in app) return app;
  const checked: Checked[] = [];
  for (const { id, checks } of demands) {
    const outcomes: Outcome[] = [];
    for (const check of checks) {
      const outcome = await make(check, connect, checker, checking.signal);
      outcomes.push(outcome);
      if (outcome.ok) continue;
      const ended = await endOf(app, checking.sandbox);
      if (ended !== undefined) return { failure: `${outcome.text}\n${ended}` };
      break;
    }
    checked.push({ id, satisfied: outcomes.every(({ ok }) => ok), text: outcomes.map(({ text }) => text).join("\n") });
  }
  return { checked };
}

async function make(
  check: Check,
  connect: Connect,
  checker: Checker | undefined,
  signal: AbortSignal,
): Promise<Outcome> {
  if (check.type === "http") {
    return await checkByHttp(check, createHttpClient(connect, appOrigin, usualExchangeLimits), signal);
  }
  if (checker === undefined) throw new SlipwayError("internal", "there is no checker");
  return await checker.check(check);
}

/** Whether the app is gone. Fails when its whole sandbox is: then the check has said nothing about it. */
async function endOf(app: App, sandbox: Sandbox): Promise<string | undefined> {
  const { state, reason } = await sandbox.info();
  if (state !== "running") throw new SlipwayError("sandbox_ended", `the app's sandbox is ${state}: ${reason}`);
  return await app.ended();
}
