import { hasCode, SlipwayError } from "@slipway/contract";
import { devServerPort, lastWords, type Sandbox, type SandboxProvider, startDevServer } from "@slipway/sandbox";
import { endOf } from "../step-words.ts";
import { openChecker } from "./checker.ts";
import type { Demand } from "./demands.ts";
import { appOrigin, type Connect, createHttpClient, usualExchangeLimits } from "./exchange.ts";
import { shown } from "./findings.ts";
import { checkByHttp } from "./http-check.ts";
import type { Outcome } from "./outcome.ts";

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
}

/** Why the app does not run, or the outcome of each demand. */
export type AllChecked = { readonly failure: string } | { readonly checked: readonly Checked[] };

/** Starts the app and makes the checks of each demand, up to its first failure. All of them see the same app. */
export async function checkAll(checking: Checking, demands: readonly Demand[]): Promise<AllChecked> {
  await using opened = new AsyncDisposableStack();
  const needsBrowser = demands.some(({ checks }) => checks.some(({ type }) => type !== "http"));
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
  const make = async (check: Demand["checks"][number]): Promise<Outcome> => {
    if (check.type === "http") {
      const client = createHttpClient(connect, appOrigin, usualExchangeLimits);
      return await checkByHttp(check, (exchange) => client.exchange(exchange, checking.signal));
    }
    if (checker === undefined) throw new SlipwayError("internal", "there is no checker");
    return await checker.check(check);
  };
  const checked: Checked[] = [];
  for (const { id, checks } of demands) {
    const outcomes: Outcome[] = [];
    for (const check of checks) {
      const outcome = await make(check);
      outcomes.push(outcome);
      if (outcome.ok) continue;
      // Throws if the whole sandbox is gone, even before that is recorded: then the check says nothing about the app.
      await checking.sandbox.files.stat("/");
      const ended = await app.ended();
      if (ended !== undefined) return { failure: `${outcome.text}\n${ended}` };
      break;
    }
    checked.push({ id, satisfied: outcomes.every(({ ok }) => ok), text: outcomes.map(({ text }) => text).join("\n") });
  }
  return { checked };
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
