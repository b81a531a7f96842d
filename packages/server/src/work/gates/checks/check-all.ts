import { checkSchema, hasCode } from "@slipway/contract";
import { devServerPort, lastWords, type Sandbox, type SandboxProvider, startDevServer } from "@slipway/sandbox";
import { endOf } from "../../step-words.ts";
import { openChecker } from "../checker.ts";
import type { Wanted } from "../demands.ts";
import { shown } from "../findings.ts";
import type { Connect } from "./exchange.ts";
import { make, needsChecker } from "./make.ts";
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
  /** Where it failed. Null: it is satisfied, the page hung, or its check names things itself and is never disputed. */
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
  const needsOne = demands.some(({ checks }) => checks.some(needsChecker));
  const connect: Connect = (signal) => checking.sandbox.connect(devServerPort, { signal });
  const [started, made] = await Promise.allSettled([
    startApp(checking),
    needsOne ? openChecker({ ...checking, connect }) : undefined,
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
      if (outcome.step !== undefined && checkSchema.safeParse(check).success) {
        failedAt = { check: outcomes.length - 1, step: outcome.step };
      }
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
