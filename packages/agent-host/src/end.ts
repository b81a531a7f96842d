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

/** A restarted runner resumes from its last finished step. A runner that keeps dying is given up. */
const maxRestarts = 3;

/** Follows a run to its end. `cancelled` notes that the runner was asked to end, and starts the grace period. */
export function endOf(following: Following): { readonly ended: Promise<End>; cancelled(): void } {
  const { open, limits } = following;
  const broken = Promise.withResolvers<never>();
  const end = (reason: EndReason, message: string) => void insist(following, reason, message).catch(broken.reject);
  const deadline = (ms: number, reason: EndReason, message: string) => setTimeout(() => end(reason, message), ms);
  const timers = [deadline(limits.totalMs + limits.graceMs, "timeout", "the runner did not end at its time limit")];
  // Some agents would keep retrying for minutes, and failed answers cost money too.
  void open.gaveUp.then(({ code }) => end(reasonOf(code) ?? "network", "the model failed repeatedly"));
  const ended = Promise.race([follow(following), broken.promise]).finally(() => {
    for (const timer of timers) clearTimeout(timer);
  });
  return {
    ended,
    cancelled: () => void timers.push(deadline(limits.graceMs, "cancelled", "the runner did not end when cancelled")),
  };
}

/** Waits for the end, restarting a runner that dies before it. Kills whatever is left of the runner at the end. */
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
      await insist(following, "runner_lost", "the runner repeatedly exited without reporting an end");
    else exec = await runner.restart().catch(giveUp(following, exec));
  }
}

/** A sandbox that ended took its runner with it. */
function giveUp(following: Following, exec: RunnerExec): (error: unknown) => Promise<RunnerExec> {
  return async (error) => {
    if (!(error instanceof SlipwayError)) throw error;
    await insist(following, "runner_lost", `the runner exited and cannot be restarted: ${error.message}`);
    return exec;
  };
}

const againMs = 1000;

/** Ends the run on the host's behalf. Retries while the end cannot be stored, until the run is released. */
async function insist({ open, signal }: Following, reason: EndReason, message: string): Promise<void> {
  for (let isTold = false; !signal.aborted; isTold = true) {
    try {
      return await open.fail(reason, message);
    } catch (error) {
      if (signal.aborted) return;
      if (!(error instanceof SlipwayError) || error.retry === "never") throw error;
      if (!isTold) process.emitWarning(`cannot end a run as ${reason} yet: ${error.message}`);
      await new Promise<void>((resolve) => void setTimeout(resolve, againMs).unref());
    }
  }
}

function sandboxIsGone(error: unknown): void {
  if (!(error instanceof SlipwayError)) throw error;
}

/** The end reason for each error that the gateway saw. */
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

/** Ends that an agent may report for a model failure without knowing which failure it was. */
const byModel: readonly EndReason[] = [
  ...(["auth", "crashed", "invalid_request", "model_not_found", "network"] as const),
  ...(["overloaded", "protocol", "rate_limited", "truncated"] as const),
];

/**
 * Checks the agent's end against what the gateway saw: an agent may not know why its model failed or that its last answer
 * was cut off, and a hostile agent may lie about it.
 */
async function verified(end: End, { open, signal }: Following): Promise<End> {
  const last = open.lastResponse();
  const seen = reasonOf(last?.code);
  // One of several concurrent answers may have been cut to pay for the others.
  const known = seen === "budget" && !(await open.ranOut(signal)) ? "truncated" : seen;
  if (end.reason === "completed" && last !== undefined && wasCutOff(last)) {
    return endAs(known ?? "truncated", "the model's last answer was cut off");
  }
  // To some agents, a stream that ends in a refusal looks cut off.
  if (end.reason === "truncated" && last?.refused) return endAs("refused", end.message);
  if (known !== undefined && byModel.includes(end.reason)) return endAs(known, end.message);
  if (end.reason === "budget" && !(await open.ranOut(signal))) {
    // The money that its other requests had reserved may be free again, or the next request may need less.
    if (open.hadUnpayable()) return endAs("truncated", end.message);
    return unfounded(end, "its budget is not used up");
  }
  // An attempt waits for its model without limit, so the agent's claim alone is not enough.
  return end.by === "model" && afterEnd(end) === "wait" ? confirmed(end, open) : end;
}

function confirmed(end: End, open: FollowedRun): End {
  const { reason, message } = end;
  const failure = open.lastFailure();
  if (failure !== undefined) return endAs(reasonOf(failure.code) ?? reason, message);
  return unfounded(end, "no model has failed");
}

function unfounded({ reason, message }: End, fact: string): End {
  return endAs("crashed", `the agent ended as ${reason}, but ${fact}: ${message}`);
}
