import { hasCode } from "@slipway/contract";
import { devServerPort, lastWords, type RestrictedSandbox, startDevServer } from "@slipway/sandbox";
import { endOf } from "../step-words.ts";
import { shown } from "./findings.ts";

/** The app of a candidate, running in its sandbox. */
export interface App {
  /** In words, once it has ended. */
  ended(): Promise<string | undefined>;
}

const maxWordsCharacters = 6000;

/** As the checks know it. */
export const appOrigin = new URL(`http://localhost:${devServerPort}`);

/** Starts the app, or says in words why it does not run. */
export async function startApp(
  sandbox: RestrictedSandbox,
  options: { readonly readyMs?: number; readonly signal: AbortSignal },
): Promise<App | { readonly failure: string }> {
  try {
    const { exec } = await startDevServer(sandbox, options);
    return {
      async ended() {
        const exit = (await sandbox.execs()).find(({ id }) => id === exec.id)?.exit ?? null;
        if (exit === null) return undefined;
        return shown(`The app ${endOf(exit)}: ${await lastWords(sandbox, exec)}`, maxWordsCharacters);
      },
    };
  } catch (error) {
    options.signal.throwIfAborted();
    const own = (["exec_not_started", "exec_ended", "connection_refused"] as const).some((code) =>
      hasCode(error, code),
    );
    if (!own) throw error;
    return { failure: shown((error as Error).message, maxWordsCharacters) };
  }
}
