import { type RunEnd, type RunEndReason, SlipwayError } from "@slipway/contract";
import type { OpenRun } from "@slipway/gateway";
import type { Exec } from "@slipway/sandbox";

interface Following {
  readonly runner: { readonly first: Exec; restart(): Promise<Exec> };
  readonly open: OpenRun;
  readonly limits: { readonly totalMs: number; readonly graceMs: number };
  readonly signal: AbortSignal;
}

/** A runner that dies goes on from its last finished step; one that keeps dying is given up. */
const maxRestarts = 3;

/** Follows a run to its end. `cancelled` tells that the runner was asked to end, which it does in its own time or not at all. */
export function endOf(following: Following): { readonly ended: Promise<RunEnd>; cancelled(): void } {
  const { open, limits } = following;
  const deadline = (ms: number, reason: RunEndReason, message: string) =>
    setTimeout(() => void open.fail(reason, message), ms);
  const timers = [
    deadline(limits.totalMs + limits.graceMs, "timeout", "the runner did not end when its time was over"),
  ];
  const ended = follow(following).finally(() => {
    for (const timer of timers) clearTimeout(timer);
  });
  return {
    ended,
    cancelled: () => void timers.push(deadline(limits.graceMs, "cancelled", "the runner did not end when told to")),
  };
}

/** Waits for the end, starting the runner again when it dies before. Then nothing of it is left. */
async function follow({ runner, open, signal }: Following): Promise<RunEnd> {
  let exec = runner.first;
  for (let restarts = 0; ; restarts++) {
    const exited = exec.wait({ signal }).then(
      () => undefined,
      () => undefined,
    );
    const end = await Promise.race([open.ended, exited]);
    if (end !== undefined) {
      await exec.kill().catch(sandboxIsGone);
      return verified(end, open);
    }
    signal.throwIfAborted();
    if (restarts === maxRestarts) await open.fail("runner_lost", "the runner ended without a word, again and again");
    else exec = await runner.restart().catch(giveUp(open, exec));
  }
}

/** A sandbox that ended took its runner with it. */
function giveUp(open: OpenRun, exec: Exec): (error: unknown) => Promise<Exec> {
  return async (error) => {
    if (!(error instanceof SlipwayError)) throw error;
    await open.fail("runner_lost", `the runner ended and can not be started again: ${error.message}`);
    return exec;
  };
}

function sandboxIsGone(error: unknown): void {
  if (!(error instanceof SlipwayError)) throw error;
}

/** An agent whose last answer was cut off may not know it, and a hostile one may not say it: the gateway knows. */
function verified(end: RunEnd, open: OpenRun): RunEnd {
  if (end.reason !== "completed" || open.lastResponse()?.end !== "truncated") return end;
  return { reason: "truncated", message: "the model's last answer was cut off" };
}
