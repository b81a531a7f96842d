import { z } from "zod";

/**
 * - `by`: whose doing it is. `host` is all that is around agent and model: sandbox, settings, money, the user's word.
 * - `next`: what follows for an attempt.
 */
type Table = Readonly<Record<string, { readonly by: EndParty; readonly next: AfterEnd }>>;

/** What a sandbox may say of its own end. */
const claimed = {
  completed: { by: "agent", next: "retry" },
  cancelled: { by: "host", next: "retry" },
  refused: { by: "model", next: "retry" },
  max_steps: { by: "agent", next: "retry" },
  budget: { by: "host", next: "pay" },
  /** The model's endpoint refused the credentials. */
  auth: { by: "host", next: "wait" },
  rate_limited: { by: "model", next: "wait" },
  /** The model's endpoint failed by itself (5xx, overloaded). */
  overloaded: { by: "model", next: "wait" },
  /** The model's endpoint could not be reached, or a connection broke before an answer. */
  network: { by: "model", next: "wait" },
  model_not_found: { by: "host", next: "wait" },
  /** The endpoint refused the request as wrong. */
  invalid_request: { by: "agent", next: "retry" },
  /** A response ended before its end; what it said so far is no answer. */
  truncated: { by: "host", next: "wait" },
  /** The answer could not be read: not JSON, not the protocol. */
  protocol: { by: "agent", next: "retry" },
  /** The run took longer than it may. */
  timeout: { by: "agent", next: "retry" },
  /** Nothing happened for longer than it may. */
  stuck: { by: "agent", next: "retry" },
  /** The same actions with the same results, again and again. */
  looping: { by: "agent", next: "retry" },
  /** The agent's program ended without an answer. */
  crashed: { by: "agent", next: "retry" },
  /** A conversation to resume is gone. */
  session_lost: { by: "agent", next: "retry" },
  internal: { by: "host", next: "retry" },
  /** The project's own build or tests fail, and the agent could not mend them. */
  checks_failed: { by: "agent", next: "retry" },
  /** The agent was asked to put its work together with main, and left conflicts. */
  conflict_left: { by: "agent", next: "retry" },
  /** The workspace could not be made: a base that is not there, an install that fails. */
  setup_failed: { by: "host", next: "retry" },
  /** The work was sent back more often than a run may be. */
  returned_too_often: { by: "agent", next: "retry" },
} as const satisfies Table;

/** How runs and attempts end: what a sandbox may say, and what only the host says. */
const ends = {
  ...claimed,
  /** The run channel carried what an honest runner does not say. */
  tampered: { by: "agent", next: "retry" },
  /** More events than a run may send. */
  flooded: { by: "agent", next: "retry" },
  /** The sandbox's disk was full. */
  disk_full: { by: "agent", next: "retry" },
  /** The runner or its sandbox is gone, or fell silent without an end of its own. */
  runner_lost: { by: "host", next: "respawn" },
  /** Something that an attempt needs is not there for now: a provider, a repository, room on this machine's disk. */
  unavailable: { by: "host", next: "wait" },
  merged: { by: "host", next: "done" },
  /** Main has what the task is for, without a change. */
  satisfied: { by: "host", next: "done" },
} as const satisfies Table;

export type EndParty = "agent" | "model" | "host";

/**
 * - `done`: the task is on main.
 * - `retry`: a failed try. The next one tries harder, until no level is left.
 * - `wait`: no try. The next attempt continues later: for a model as often as it takes, for anything else a few times.
 * - `respawn`: a new sandbox takes over from the last checkpoint.
 * - `pay`: it continues when there is money.
 */
export type AfterEnd = "done" | "retry" | "wait" | "respawn" | "pay";

export type EndReason = keyof typeof ends;

export const maxEndCharacters = 20_000;

/** How a run or an attempt ended. The first end counts. */
export const endSchema = z.strictObject({
  reason: z.enum(Object.keys(ends) as EndReason[]),
  by: z.enum(["agent", "model", "host"]),
  // Postgres keeps no text with a zero byte.
  message: z
    .string()
    .max(maxEndCharacters)
    .overwrite((value) => value.replaceAll("\0", "")),
});
export type End = Readonly<z.output<typeof endSchema>>;

/** How a run, or a turn of an agent, ended by its own account. The message of `completed` is the agent's answer. */
export const claimedEndSchema = endSchema.omit({ by: true }).extend({
  reason: z.enum(Object.keys(claimed) as (keyof typeof claimed)[]),
});
export type ClaimedEnd = Readonly<z.output<typeof claimedEndSchema>>;

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
