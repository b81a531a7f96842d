import process from "node:process";
import { afterEnd, type End, type EndReason, type ErrorCode, endAs, SlipwayError } from "@slipway/contract";
import { type OpenRun, wasCutOff } from "@slipway/gateway";
import type { Exec } from "@slipway/sandbox";

interface Following {
  readonly runner: { readonly first: RunnerExec; restart(): Promise<RunnerExec> };
  readonly open: FollowedRun;
  readonly limits: { readonly totalMs: number; readonly graceMs: number };
  readonly signal: AbortSignal;
}

type RunnerExec = Pick<Exec, "wait" | "kill">;
type FollowedRun = Pick<
  OpenRun,
  "ended" | "fail" | "lastResponse" | "lastFailure" | "ranOut" | "hadUnpayable" | "gaveUp"
>;

/** A runner that dies goes on from its last finished step; one that keeps dying is given up. */
const maxRestarts = 3;

/** Follows a run to its end. `cancelled` tells that the runner was asked to end, which it does in its own time or not at all. */
export function endOf(following: Following): { readonly ended: Promise<End>; cancelled(): void } {
  const { open, limits } = following;
  const broken = Promise.withResolvers<never>();
  const end = (reason: EndReason, message: string) => void insist(following, reason, message).catch(broken.reject);
  const deadline = (ms: number, reason: EndReason, message: string) => setTimeout(() => end(reason, message), ms);
  const timers = [
    deadline(limits.totalMs + limits.graceMs, "timeout", "the runner did not end when its time was over"),
  ];
  // Some agents would go on trying for minutes, and broken answers cost money, too.
  void open.gaveUp.then(({ code }) => end(reasonOf(code) ?? "network", "the model failed again and again"));
  const ended = Promise.race([follow(following), broken.promise]).finally(() => {
    for (const timer of timers) clearTimeout(timer);
  });
  return {
    ended,
    cancelled: () => void timers.push(deadline(limits.graceMs, "cancelled", "the runner did not end when told to")),
  };
}

/** Waits for the end, starting the runner again when it dies before. Then nothing of it is left. */
async function follow(following: Following): Promise<End> {
  const { runner, open, signal } = following;
  let exec = runner.first;
  for (let restarts = 0; ; restarts++) {
    const exited = exec.wait({ signal }).then(
      () => undefined,
      () => undefined,
    );
    const end = await Promise.race([open.ended, exited]);
    if (end !== undefined) {
      await exec.kill().catch(sandboxIsGone);
      return await verified(end, following);
    }
    signal.throwIfAborted();
    if (restarts === maxRestarts)
      await insist(following, "runner_lost", "the runner ended without a word, again and again");
    else exec = await runner.restart().catch(giveUp(following, exec));
  }
}

/** A sandbox that ended took its runner with it. */
function giveUp(following: Following, exec: RunnerExec): (error: unknown) => Promise<RunnerExec> {
  return async (error) => {
    if (!(error instanceof SlipwayError)) throw error;
    await insist(following, "runner_lost", `the runner ended and can not be started again: ${error.message}`);
    return exec;
  };
}

const againMs = 1000;

/** Ends the run by the host's will. While that can not be kept for now it is tried again, until the run is let go of. */
async function insist({ open, signal }: Following, reason: EndReason, message: string): Promise<void> {
  for (let isTold = false; !signal.aborted; isTold = true) {
    try {
      return await open.fail(reason, message);
    } catch (error) {
      if (signal.aborted) return;
      if (!(error instanceof SlipwayError) || error.retry === "never") throw error;
      if (!isTold) process.emitWarning(`a run can not be ended as ${reason} for now: ${error.message}`);
      await new Promise<void>((resolve) => void setTimeout(resolve, againMs).unref());
    }
  }
}

function sandboxIsGone(error: unknown): void {
  if (!(error instanceof SlipwayError)) throw error;
}

/** What the gateway saw, and how a run that ended by it has ended. */
const endsByCode: Partial<Record<ErrorCode, EndReason>> = {
  budget_exhausted: "budget",
  invalid_answer: "protocol",
  missing_key: "auth",
  model_key_refused: "auth",
  model_overloaded: "overloaded",
  model_rate_limited: "rate_limited",
  model_refused: "invalid_request",
  model_timeout: "network",
  model_unreachable: "network",
  stream_truncated: "truncated",
  unknown_model: "model_not_found",
};

function reasonOf(code: ErrorCode | undefined): EndReason | undefined {
  return code === undefined ? undefined : endsByCode[code];
}

/** Ends that an agent may give for the failure of a model without knowing which one it was. */
const byModel: readonly EndReason[] = [
  ...(["auth", "crashed", "invalid_request", "model_not_found", "network"] as const),
  ...(["overloaded", "protocol", "rate_limited", "truncated"] as const),
];

/**
 * An agent may not know why its model failed, nor that its last answer was cut off, and a hostile one may not say it: the
 * gateway knows.
 */
async function verified(end: End, { open, signal }: Following): Promise<End> {
  const last = open.lastResponse();
  const seen = reasonOf(last?.code);
  // One of several answers at once may have been cut for the others' sake.
  const known = seen === "budget" && !(await open.ranOut(signal)) ? "truncated" : seen;
  if (end.reason === "completed" && last !== undefined && wasCutOff(last)) {
    return endAs(known ?? "truncated", "the model's last answer was cut off");
  }
  // A stream that ends in a refusal looks like a cut to some agents.
  if (end.reason === "truncated" && last?.refused) return endAs("refused", end.message);
  if (known !== undefined && byModel.includes(end.reason)) return endAs(known, end.message);
  if (end.reason === "budget" && !(await open.ranOut(signal))) {
    // What others of its requests held then may be there again, or the next request needs less.
    if (open.hadUnpayable()) return endAs("truncated", end.message);
    return unfounded(end, "its money is not used up");
  }
  // An attempt waits for its model however long that takes: an agent's word is not enough.
  return end.by === "model" && afterEnd(end) === "wait" ? confirmed(end, open) : end;
}

function confirmed(end: End, open: FollowedRun): End {
  const { reason, message } = end;
  const failure = open.lastFailure();
  if (failure !== undefined) return endAs(reasonOf(failure.code) ?? reason, message);
  return unfounded(end, "no model has failed");
}

function unfounded({ reason, message }: End, fact: string): End {
  return endAs("crashed", `the agent ended as ${reason}, and ${fact}: ${message}`);
}
