import { z } from "zod";
import { runIdSchema } from "../base/ids.ts";
import { absolutePathSchema } from "../sandboxes/sandbox.ts";
import { agentEventSchema, agentNameSchema, endedSchema } from "./agent.ts";
import { taskControlSchemas, taskEventSchemas, taskOrderSchema } from "./task-run.ts";

/** The run channel: what the runner inside a sandbox and the host say to each other. docs/run-channel.md tells the rules. */
export const runChannel = {
  /** Of the requests below; the host refuses a runner of another one. */
  version: 1,
  maxBatchEvents: 256,
  maxBodyBytes: 1024 * 1024,
  maxEventsPerRun: 200_000,
  /** Of all events of a run together, as the host keeps them. */
  maxRunBytes: 512 * 1024 * 1024,
  /** A runner that says nothing for three of these is taken for lost. */
  heartbeatMs: 30_000,
} as const;

const text = z.string().max(256 * 1024);
const name = z.string().min(1).max(64);

export const runLimitsSchema = z.strictObject({
  /** Of the whole run. */
  totalMs: z.int().min(100).default(3_600_000),
  /** Without anything from an agent. Longer than the longest quiet command may take. */
  idleMs: z.int().min(100).default(600_000),
  /** Model calls of one agent in one turn. */
  maxSteps: z.int().min(1).max(10_000).default(200),
  /** How often an agent may do the same with the same result. */
  maxRepeats: z.int().min(2).max(100).default(6),
});
export type RunLimits = z.output<typeof runLimitsSchema>;

/** What a runner is to do. It is the same after a restart: what is done by then, the runner knows from its own files. */
export const runTaskSchema = z.strictObject({
  agent: agentNameSchema,
  /** What is to be done, but for a task run. */
  prompt: text,
  /** Makes it a task run: the order is taken through the six phases. */
  order: taskOrderSchema.optional(),
  /** Instructions and knowledge for every agent of the run, as Markdown. */
  context: text.default(""),
  workdir: absolutePathSchema.default("/workspace"),
  /** How many workers the lead may hand tasks to; 0: it works alone. */
  workers: z.int().min(0).max(4).default(0),
  /** The model, as the agent names it to the gateway. */
  model: z.string().min(1).max(256),
  /** `allow`: the sandbox is the limit. `ask`: each action waits for an answer from the user. */
  permissions: z.enum(["allow", "ask"]).default("allow"),
  limits: runLimitsSchema.prefault({}),
});
export type RunTask = z.output<typeof runTaskSchema>;
export type RunTaskInput = z.input<typeof runTaskSchema>;

/** One task of the list that a lead and its workers share. */
const teamTask = z.strictObject({
  id: z.int().min(1),
  title: z.string().min(1).max(4096),
  status: z.enum(["pending", "in_progress", "completed", "failed"]),
  owner: name.optional(),
});

/** What a runner reports. All of it is a claim: checked by schema, stored, shown, never executed. */
export const runnerEventSchema = z.discriminatedUnion("type", [
  /** `agent` is `lead` or `worker-1` to `worker-4`. */
  z.strictObject({ type: z.literal("agent"), agent: name, event: agentEventSchema }),
  z.strictObject({ type: z.literal("task"), task: teamTask }),
  z.strictObject({ type: z.literal("note"), agent: name, text: z.string().max(16 * 1024) }),
  /** The runner has come back after it was ended, and goes on from its last finished step. */
  z.strictObject({ type: z.literal("resumed"), step: z.int().min(0) }),
  endedSchema,
  ...taskEventSchemas,
]);
export type RunnerEvent = z.output<typeof runnerEventSchema>;
export type TeamTask = z.output<typeof teamTask>;

/** `sequence` begins at 1 and rises by one. The same number with other content ends the run as `tampered`. */
export const numberedEventSchema = z.strictObject({
  sequence: z.int().min(1).max(runChannel.maxEventsPerRun),
  at: z.int().min(0),
  event: runnerEventSchema,
});
export type NumberedEvent = z.output<typeof numberedEventSchema>;

/** `POST /run/hello` */
export const helloRequestSchema = z.strictObject({ version: z.int(), instance: z.string().min(1).max(64) });
export const helloResponseSchema = z.object({
  run: runIdSchema,
  task: runTaskSchema,
  /** The first sequence number that the host has not. */
  next: z.int().min(1),
});
export type HelloResponse = Readonly<z.output<typeof helloResponseSchema>>;

/** `POST /run/events`. Answers `EventsResponse`: events before `next` are kept and need not be sent again. */
export const eventsRequestSchema = z.strictObject({
  events: z.array(numberedEventSchema).min(1).max(runChannel.maxBatchEvents),
});
export const eventsResponseSchema = z.object({ next: z.int().min(1) });
export type EventsResponse = Readonly<z.output<typeof eventsResponseSchema>>;

/** Beside the error's own fields, a refusal of events tells the first sequence number that the host has not. */
export const channelRefusalSchema = z.object({
  code: z.string(),
  message: z.string(),
  next: z.int().min(1).optional(),
});

const sequence = z.int().min(1);

/** What the host tells a runner while it works. */
export const controlMessageSchema = z.discriminatedUnion("type", [
  z.object({ sequence, type: z.literal("message"), text }),
  z.object({ sequence, type: z.literal("interrupt") }),
  z.object({ sequence, type: z.literal("cancel") }),
  z.object({
    sequence,
    type: z.literal("permission"),
    id: z.string().min(1).max(256),
    allow: z.boolean(),
    reason: z.string().max(4096),
  }),
  /** More knowledge for the agents; taken up at their next step. */
  z.object({ sequence, type: z.literal("context"), text }),
  ...taskControlSchemas,
]);
export type ControlMessage = Readonly<z.output<typeof controlMessageSchema>>;

/** As the host's side makes them: the channel numbers them. */
export type Control = ControlMessage extends infer M ? (M extends unknown ? Omit<M, "sequence"> : never) : never;

/** `GET /run/control?after=<sequence>`: answers as soon as there is a message after that one, or empty after a while. A poll is a heartbeat. */
export const controlResponseSchema = z.object({ messages: z.array(controlMessageSchema) });
export type ControlResponse = Readonly<z.output<typeof controlResponseSchema>>;
