import { mkdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { commitSchema, runIdSchema, SlipwayError } from "@slipway/contract";
import { z } from "zod";
import { type DurableFile, durableFile } from "../system/durable.ts";
import { boardSchema } from "./board.ts";
import { inboxSchema, type SharedPart, sharedSchema } from "./inbox.ts";
import { mailSchema } from "./mailbox.ts";

/** How far a task run is in its phases. */
const phasesSchema = z.strictObject({
  /** Steps that are done, and what came of them. */
  journal: z.record(z.string(), z.unknown()),
  /** The last commit of its branch; null: there is no branch yet. */
  tip: commitSchema.nullable(),
  /** The last commit that the host was told of. */
  shown: commitSchema.optional(),
  /** What the agents were last set to, which the stage belongs to. */
  turn: z.string().nullable(),
  /** What the agent has said of the criteria, by their ids. */
  criteria: z.record(z.string(), z.boolean()),
});
export type PhasesProgress = z.output<typeof phasesSchema>;

/** How far a run is. */
const progressSchema = z.strictObject({
  /** Tool calls that have ended. */
  step: z.int().min(0),
  run: runIdSchema.optional(),
  /** The last message of the host to that run that was heeded. */
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

/** What a runner that was ended leaves to the next one. A save answers when it is on disk. */
export interface Checkpoint {
  /** Undefined: the run begins. */
  readonly found: Progress | undefined;
  /** What the sandboxes of the build share, as far as it was told. */
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
    throw new SlipwayError("internal", `the checkpoint ${path} can not be read`, { cause: error });
  }
}
