import type { Duplex } from "node:stream";
import { hasCode, printable } from "@slipway/contract";
import { devServerPort, lastWords, type RestrictedSandbox, startDevServer } from "@slipway/sandbox";
import { endOf } from "../step-words.ts";
import { cut } from "./findings.ts";

/** The app of a candidate, running in its sandbox. */
export interface App {
  connect(signal: AbortSignal): Promise<Duplex>;
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
    const { exec, port } = await startDevServer(sandbox, options);
    return {
      connect: (signal) => sandbox.connect(port, { signal }),
      async ended() {
        const exit = (await sandbox.execs()).find(({ id }) => id === exec.id)?.exit ?? null;
        if (exit === null) return undefined;
        return cut(`The app ${endOf(exit)}: ${printable(await lastWords(sandbox, exec))}`, maxWordsCharacters);
      },
    };
  } catch (error) {
    options.signal.throwIfAborted();
    const own = (["exec_not_started", "exec_ended", "connection_refused"] as const).some((code) =>
      hasCode(error, code),
    );
    if (!own) throw error;
    return { failure: cut(printable((error as Error).message), maxWordsCharacters) };
  }
}
