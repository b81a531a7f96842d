import { z } from "zod";

/**
 * How runs and attempts end.
 * - `by`: whose doing it is. `host` is all that is around agent and model: sandbox, settings, money, the user's word.
 * - `said`: who may claim it: an agent that is done or failed, the runner of a task run, or the host alone.
 * - `next`: what follows for an attempt.
 */
const ends = {
  completed: { said: "done", by: "agent", next: "retry" },
  cancelled: { said: "done", by: "host", next: "retry" },
  refused: { said: "done", by: "model", next: "retry" },
  max_steps: { said: "done", by: "agent", next: "retry" },
  budget: { said: "done", by: "host", next: "pay" },
  /** The model's endpoint refused the credentials. */
  auth: { said: "error", by: "host", next: "wait" },
  rate_limited: { said: "error", by: "model", next: "wait" },
  /** The model's endpoint failed by itself (5xx, overloaded). */
  overloaded: { said: "error", by: "model", next: "wait" },
  /** The model's endpoint could not be reached, or a connection broke before an answer. */
  network: { said: "error", by: "model", next: "wait" },
  model_not_found: { said: "error", by: "host", next: "wait" },
  /** The endpoint refused the request as wrong. */
  invalid_request: { said: "error", by: "agent", next: "retry" },
  /** A response ended before its end; what it said so far is no answer. */
  truncated: { said: "error", by: "host", next: "wait" },
  /** The answer could not be read: not JSON, not the protocol. */
  protocol: { said: "error", by: "agent", next: "retry" },
  /** The run took longer than it may. */
  timeout: { said: "error", by: "agent", next: "retry" },
  /** Nothing happened for longer than it may. */
  stuck: { said: "error", by: "agent", next: "retry" },
  /** The same actions with the same results, again and again. */
  looping: { said: "error", by: "agent", next: "retry" },
  /** The agent's program ended without an answer. */
  crashed: { said: "error", by: "agent", next: "retry" },
  /** A conversation to resume is gone. */
  session_lost: { said: "error", by: "agent", next: "retry" },
  internal: { said: "error", by: "host", next: "retry" },
  /** The project's own build or tests fail, and the agent could not mend them. */
  checks_failed: { said: "task", by: "agent", next: "retry" },
  /** The agent was asked to put its work together with main, and left conflicts. */
  conflict_left: { said: "task", by: "agent", next: "retry" },
  /** The workspace could not be made: a base that is not there, an install that fails. */
  setup_failed: { said: "task", by: "host", next: "retry" },
  /** The work was sent back more often than a run may be. */
  returned_too_often: { said: "task", by: "agent", next: "retry" },
  /** The run channel carried what an honest runner does not say. */
  tampered: { said: "host", by: "agent", next: "retry" },
  /** More events than a run may send. */
  flooded: { said: "host", by: "agent", next: "retry" },
  /** The sandbox's disk was full. */
  disk_full: { said: "host", by: "agent", next: "retry" },
  /** The runner or its sandbox is gone, or fell silent without an end of its own. */
  runner_lost: { said: "host", by: "host", next: "respawn" },
  /** Something that an attempt needs is not there for now: a provider, a repository, room on this machine's disk. */
  unavailable: { said: "host", by: "host", next: "wait" },
  merged: { said: "host", by: "host", next: "done" },
  /** Main has what the task is for, without a change. */
  satisfied: { said: "host", by: "host", next: "done" },
} as const satisfies Record<string, { said: Said; by: EndParty; next: AfterEnd }>;

type Said = "done" | "error" | "task" | "host";
export type EndParty = "agent" | "model" | "host";

/**
 * - `done`: the task is on main.
 * - `retry`: a failed try. The next one tries harder, until no level is left.
 * - `wait`: no try. It goes on later: for a model as often as it takes, for anything else a few times.
 * - `respawn`: a new sandbox takes over from the last checkpoint.
 * - `pay`: it goes on when there is money.
 */
export type AfterEnd = "done" | "retry" | "wait" | "respawn" | "pay";

export type EndReason = keyof typeof ends;
type SaidBy<S extends Said> = { [R in EndReason]: (typeof ends)[R]["said"] extends S ? R : never }[EndReason];

function reasonsSaid<S extends Said>(...said: readonly S[]): readonly SaidBy<S>[] {
  const reasons = Object.keys(ends) as EndReason[];
  return reasons.filter((reason) => said.some((one) => one === ends[reason].said)) as SaidBy<S>[];
}

/** How an agent ended by its own account or by its limits: nothing is broken. */
export const doneOutcomes = reasonsSaid("done");
/** How an agent failed. */
export const agentErrorKinds = reasonsSaid("error");
export type AgentErrorKind = (typeof agentErrorKinds)[number];
/** What a runner may say of its run. */
export const claimedReasons = reasonsSaid("done", "error", "task");

/** How a run or an attempt ended. The first end counts. */
export const endSchema = z.strictObject({
  reason: z.enum(reasonsSaid("done", "error", "task", "host")),
  by: z.enum(["agent", "model", "host"]),
  // Postgres keeps no text with a zero byte.
  message: z
    .string()
    .max(20_000)
    .overwrite((value) => value.replaceAll("\0", "")),
});
export type End = Readonly<z.output<typeof endSchema>>;

export function endAs(reason: EndReason, message = ""): End {
  return { reason, by: ends[reason].by, message };
}

export function afterEnd({ reason }: Pick<End, "reason">): AfterEnd {
  return ends[reason].next;
}

/** An end in one text: the reason, and what is said of it. */
export function endText({ reason, message }: Pick<End, "reason" | "message">): string {
  return message === "" ? reason : `${reason}: ${message}`;
}
