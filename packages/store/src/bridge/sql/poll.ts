import { SlipwayError } from "@slipway/contract";

/** Looks again `pauseMs` after each look until disposed of. Ignores failures that may pass. */
export function startPolling(look: () => Promise<void>, pauseMs: number): AsyncDisposable {
  let timer: NodeJS.Timeout;
  let turn = Promise.resolve();
  let stopped = false;
  const plan = () => {
    timer = setTimeout(() => {
      turn = takeTurn();
    }, pauseMs).unref();
  };
  const takeTurn = async () => {
    await look().catch(ignorePassing);
    if (!stopped) plan();
  };
  plan();
  return {
    async [Symbol.asyncDispose]() {
      stopped = true;
      clearTimeout(timer);
      await turn;
    },
  };
}

function ignorePassing(error: unknown): void {
  if (!(error instanceof SlipwayError) || error.retry === "never") throw error;
}
