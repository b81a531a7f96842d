import { mkdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { commitSchema, runIdSchema, SlipwayError } from "@slipway/contract";
import { z } from "zod";
import { type DurableFile, durableFile } from "../system/durable.ts";
import { boardSchema } from "./board.ts";
import { inboxSchema, type SharedPart, sharedSchema } from "./inbox.ts";
import { mailSchema } from "./mailbox.ts";

/** The progress of a task run through its phases. */
const phasesSchema = z.strictObject({
  /** Finished steps with their results. */
  journal: z.record(z.string(), z.unknown()),
  /** The last commit of the branch. Null before there is one. */
  tip: commitSchema.nullable(),
  /** The last commit that the host was told of. */
  shown: commitSchema.optional(),
  /** The agents' current work, to which the stage belongs. */
  turn: z.string().nullable(),
  /** The agent's statements on the criteria, by their ids. */
  criteria: z.record(z.string(), z.boolean()),
});
export type PhasesProgress = z.output<typeof phasesSchema>;

/** The progress of a run. */
const progressSchema = z.strictObject({
  /** Finished tool calls. */
  step: z.int().min(0),
  run: runIdSchema.optional(),
  /** The host's last message to this run that was obeyed. */
  heard: z.int().min(0).optional(),
  spentMs: z.number().min(0),
  stage: z.discriminatedUnion("name", [
    z.strictObject({ name: z.literal("lead"), round: z.int().min(1), prompt: z.string() }),
    z.strictObject({ name: z.literal("workers"), round: z.int().min(1), firstTask: z.int().min(1) }),
  ]),
  board: boardSchema,
  mail: mailSchema,
  phases: phasesSchema.optional(),
  inbox: inboxSchema.optional(),
});
export type Progress = z.output<typeof progressSchema>;

const agentSchema = z.strictObject({ turn: z.string(), state: z.unknown() });
/** What an agent's driver has saved, and in which turn. */
type SavedAgent = z.output<typeof agentSchema>;

/** What a stopped runner leaves to the next one. Saves resolve when they are on disk. */
export interface Checkpoint {
  /** Undefined at the start of a run. */
  readonly found: Progress | undefined;
  /** What the build's sandboxes share, as last received. */
  readonly shared: readonly SharedPart[] | undefined;
  save(progress: Progress): Promise<void>;
  saveShared(shared: readonly SharedPart[]): Promise<void>;
  agent(name: string): Promise<SavedAgent | undefined>;
  saveAgent(name: string, saved: SavedAgent): Promise<void>;
}

export async function openCheckpoint(directory: string): Promise<Checkpoint> {
  await mkdir(directory, { recursive: true });
  const files = new Map<string, DurableFile>();
  const pathOf = (name: string) => join(directory, `${name}.json`);
  const write = async (name: string, value: unknown) => {
    const file = files.get(name) ?? durableFile(pathOf(name));
    files.set(name, file);
    await file.write(JSON.stringify(value));
  };
  return {
    found: await read(pathOf("run"), progressSchema),
    shared: await read(pathOf("shared"), sharedSchema),
    save: (progress) => write("run", progress),
    saveShared: (shared) => write("shared", shared),
    agent: (name) => read(pathOf(`agent-${name}`), agentSchema),
    saveAgent: (name, saved) => write(`agent-${name}`, saved),
  };
}

async function read<T>(path: string, schema: z.ZodType<T>): Promise<T | undefined> {
  try {
    return schema.parse(JSON.parse(await readFile(path, "utf8")));
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === "ENOENT") return undefined;
    throw new SlipwayError("internal", `the checkpoint ${path} cannot be read`, { cause: error });
  }
}
