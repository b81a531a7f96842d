import { z } from "zod";
import { absolutePathSchema } from "../sandboxes/sandbox.ts";
import { taskOrderSchema } from "./task-run.ts";

/** The run channel: what the runner inside a sandbox and the host say to each other. docs/run-channel.md tells the rules. */
export const runChannel = {
  /** Of its requests; the host refuses a runner of another one. */
  version: 1,
  maxBatchEvents: 256,
  maxBodyBytes: 1024 * 1024,
  maxEventsPerRun: 200_000,
  /** Of all events of a run together, as the host keeps them. */
  maxRunBytes: 512 * 1024 * 1024,
  /** A runner that says nothing for three of these is taken for lost. */
  heartbeatMs: 30_000,
} as const;

/** `builtin`, `claude-code`, or `acp:` and the name of an agent that speaks the Agent Client Protocol. */
export const agentNameSchema = z
  .string()
  .regex(/^(builtin|claude-code|acp:[a-z][a-z0-9-]{0,63})$/, "expected builtin, claude-code or acp:<name>");

const text = z.string().max(256 * 1024);

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
