import { z } from "zod";
import { slugSchema } from "../base/ids.ts";
import { runChannel } from "../runs/run.ts";
import { commitSchema, taskPhases } from "../runs/task-run.ts";
import { agentEventSchema, endedSchema } from "./agent.ts";

const name = z.string().min(1).max(64);
const paths = z.array(z.string().max(1024)).max(200);

/** One task of the list that a lead and its workers share. */
const teamTask = z.strictObject({
  id: z.int().min(1),
  title: z.string().min(1).max(4096),
  status: z.enum(["pending", "in_progress", "completed", "failed"]),
  owner: name.optional(),
});
export type TeamTask = z.output<typeof teamTask>;

/**
 * A bundle lies at its `offerPath` and wants to be merged. Where nothing is changed and the commit is main's there is
 * none: main is said to have all that the task is for. Numbers rise, and may leave some out; the same one may be told again.
 */
export const offeredSchema = z.strictObject({
  type: z.literal("offered"),
  number: z.int().min(1),
  commit: commitSchema,
  tree: commitSchema,
  /** The commit of main that it holds. */
  main: commitSchema,
  changed: z.int().min(0),
  tests: z.strictObject({ changed: paths, deleted: paths }),
});
export type Offered = z.output<typeof offeredSchema>;

/** What a runner reports. All of it is a claim: checked by schema, stored, shown, never executed. */
export const runnerEventSchema = z.discriminatedUnion("type", [
  /** `agent` is `lead` or `worker-1` to `worker-4`. */
  z.strictObject({ type: z.literal("agent"), agent: name, event: agentEventSchema }),
  z.strictObject({ type: z.literal("task"), task: teamTask }),
  z.strictObject({ type: z.literal("note"), agent: name, text: z.string().max(16 * 1024) }),
  /** The runner was started again and continues from its last finished step. */
  z.strictObject({ type: z.literal("resumed"), step: z.int().min(0) }),
  endedSchema,
  // Of a task run.
  /** `round`: from 1; one more each time that an offer comes back. */
  z.strictObject({
    type: z.literal("phase"),
    phase: z.enum(taskPhases),
    status: z.enum(["begun", "finished", "failed"]),
    round: z.int().min(1),
  }),
  /** One of the project's commands has run. */
  z.strictObject({
    type: z.literal("command"),
    phase: z.enum(taskPhases),
    command: z.enum(["install", "build", "test"]),
    ok: z.boolean(),
    durationMs: z.int().min(0),
    /** Its end, when it is long. */
    output: z.string().max(16 * 1024),
  }),
  /** The branch, or an agent at work on it, has another commit; a bundle with it, or with a later one, lies at `openBranchPath`. */
  z.strictObject({ type: z.literal("committed"), commit: commitSchema }),
  /** What the agent says of a criterion. */
  z.strictObject({
    type: z.literal("criterion"),
    criterion: slugSchema,
    satisfied: z.boolean(),
    evidence: z.string().max(4096),
  }),
  /** A wish to change files alone. `claimed` answers it. */
  z.strictObject({ type: z.literal("claim"), id: name, paths: z.array(z.string().min(1).max(1024)).min(1).max(64) }),
  /** For the other sandboxes of the build. */
  z.strictObject({ type: z.literal("told"), title: z.string().min(1).max(300), text: z.string().max(16 * 1024) }),
  offeredSchema,
]);
export type RunnerEvent = z.output<typeof runnerEventSchema>;

/** `sequence` begins at 1 and rises by one. The same number with other content ends the run as `tampered`. */
export const numberedEventSchema = z.strictObject({
  sequence: z.int().min(1).max(runChannel.maxEventsPerRun),
  at: z.int().min(0),
  event: runnerEventSchema,
});
export type NumberedEvent = z.output<typeof numberedEventSchema>;
