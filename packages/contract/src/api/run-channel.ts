import { z } from "zod";
import { runIdSchema } from "../base/ids.ts";
import { numberedEventSchema } from "../events/run.ts";
import { runChannel, runTaskSchema } from "../runs/run.ts";
import { commitSchema, contextPartSchema, findingsSchema } from "../runs/task-run.ts";
import { absolutePathSchema } from "../sandboxes/sandbox.ts";

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
const text = z.string().max(256 * 1024);

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
  // To a task run.
  /** Main has moved. The bundle has what is between the base, or a main that was told before, and this one. */
  z.object({ sequence, type: z.literal("main"), commit: commitSchema, bundle: absolutePathSchema }),
  /**
   * Of checks beside the work, or of an offer that is not merged: then the run works it over on the newest main and offers
   * again. None: it only has to be put together with main.
   */
  z.object({ sequence, type: z.literal("findings"), offer: z.int().min(1).optional(), findings: findingsSchema }),
  /** `quiet`: agents at work find it where they look, and are not spoken to. */
  z.object({ sequence, type: z.literal("shared"), part: contextPartSchema, quiet: z.boolean().optional() }),
  z.object({
    sequence,
    type: z.literal("claimed"),
    id: z.string().min(1).max(64),
    granted: z.boolean(),
    /** Who holds what is in the way. */
    held: z.array(z.strictObject({ path: z.string().max(1024), owner: z.string().max(128) })).max(64),
  }),
  /** What was offered is in main: the run is over. */
  z.object({ sequence, type: z.literal("merged") }),
]);
export type ControlMessage = Readonly<z.output<typeof controlMessageSchema>>;

/** As the host's side makes them: the channel numbers them. */
export type Control = ControlMessage extends infer M ? (M extends unknown ? Omit<M, "sequence"> : never) : never;

/** `GET /run/control?after=<sequence>`: answers as soon as there is a message after that one, or empty after a while. A poll is a heartbeat. */
export const controlResponseSchema = z.object({ messages: z.array(controlMessageSchema) });
export type ControlResponse = Readonly<z.output<typeof controlResponseSchema>>;
