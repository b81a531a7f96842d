import { mkdir, readdir, readFile, rename, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import {
  type AttemptId,
  attemptIdSchema,
  commitSchema,
  sandboxIdSchema,
  slugSchema,
  snapshotIdSchema,
  taskOrderSchema,
} from "@slipway/contract";
import { z } from "zod";

/** What is kept of an attempt beside the store: what another process needs to go on with it. */
const keptSchema = z.strictObject({
  id: attemptIdSchema,
  task: slugSchema,
  number: z.int().min(1),
  /** The same for all runs of the attempt: they go on with each other's work. */
  order: taskOrderSchema.omit({ bundle: true, fixModel: true }),
  respawn: z.int().min(0),
  /** Runs in the same sandbox: one that ended for want of money is followed by another. */
  part: z.int().min(0),
  /** Null: there is none yet in this life. */
  sandbox: sandboxIdSchema.nullable(),
  /** The run's last event that was taken in. */
  heard: z.int().min(0),
  /** The budget of the build under which the run was refused. */
  refusedMicroUsd: z.int().min(0).nullable(),
  /** Its checkpoints, the latest last. */
  snapshots: z.array(snapshotIdSchema),
  checkpoints: z.int().min(0),
  /** The last commit that it offered. */
  offered: commitSchema.nullable(),
  /** The last commit of its branch that was taken in, offered or not. */
  tip: commitSchema.nullable().default(null),
  /** Of all that it has offered or shown, taken or not. */
  offeredBytes: z.int().min(0).default(0),
});
export type Kept = z.output<typeof keptSchema>;

/** The attempts of one build, a file each. */
export interface KeptAttempts {
  read(attempt: AttemptId): Promise<Kept | undefined>;
  write(kept: Kept): Promise<void>;
  remove(attempt: AttemptId): Promise<void>;
  /** Whose files there are, be it that they can not be read. */
  list(): Promise<readonly AttemptId[]>;
}

export function openKeptAttempts(directory: string): KeptAttempts {
  /** By file: a later write is never overtaken by an earlier one. */
  const writing = new Map<AttemptId, Promise<void>>();
  /** What the next write of a file writes: all that is asked for while another one is under way. */
  const waiting = new Map<AttemptId, { kept: Kept; readonly written: Promise<void> }>();
  const pathOf = (attempt: AttemptId) => join(directory, `${attemptIdSchema.parse(attempt)}.json`);
  const read = async (attempt: AttemptId) => {
    const text = await readFile(pathOf(attempt), "utf8").catch((error: NodeJS.ErrnoException) => {
      if (error.code === "ENOENT") return undefined;
      throw error;
    });
    return text === undefined ? undefined : keptSchema.parse(JSON.parse(text));
  };
  const writeOut = async (kept: Kept) => {
    const path = pathOf(kept.id);
    await mkdir(directory, { recursive: true, mode: 0o700 });
    await writeFile(`${path}.new`, JSON.stringify(kept), { flush: true });
    await rename(`${path}.new`, path);
  };
  return {
    read,
    async write(kept) {
      const known = waiting.get(kept.id);
      if (known !== undefined) {
        known.kept = kept;
        return await known.written;
      }
      const written = (writing.get(kept.id) ?? Promise.resolve()).then(async () => {
        waiting.delete(kept.id);
        await writeOut(next.kept);
      });
      const next = { kept, written };
      waiting.set(kept.id, next);
      writing.set(
        kept.id,
        written.catch(() => {}),
      );
      await written;
    },
    async remove(attempt) {
      await writing.get(attempt);
      writing.delete(attempt);
      await rm(pathOf(attempt), { force: true });
    },
    async list() {
      const names = await readdir(directory).catch(() => []);
      return names.flatMap((name) => attemptIdSchema.safeParse(name.replace(/\.json$/, "")).data ?? []);
    },
  };
}
