import {
  type AttemptId,
  attemptIdSchema,
  type BuildId,
  commitSchema,
  createSaver,
  sandboxIdSchema,
  slugSchema,
  snapshotIdSchema,
  taskOrderSchema,
} from "@slipway/contract";
import type { NoteWork, WorkNotes } from "@slipway/engine";
import { z } from "zod";

/** What a server needs to go on with an attempt that another one began. */
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

/** The attempts of one build. */
export interface KeptAttempts {
  read(attempt: AttemptId): Promise<Kept | undefined>;
  /** Fails with `lease_lost` when another server drives the build. */
  write(kept: Kept): Promise<void>;
  remove(attempt: AttemptId): Promise<void>;
  list(): Promise<readonly AttemptId[]>;
}

export interface KeptParts {
  readonly notes: Pick<WorkNotes, "list">;
  readonly note: NoteWork;
}

const kind = "attempt";

export function openKeptAttempts(build: BuildId, { notes, note }: KeptParts): KeptAttempts {
  const savers = new Map<AttemptId, (kept: Kept | null) => Promise<void>>();
  const saverOf = (id: AttemptId) => {
    const saver =
      savers.get(id) ??
      createSaver((kept: Kept | null) =>
        note(build, [{ kind, name: id, note: kept && (keptSchema.encode(kept) as z.core.util.JSONType) }]),
      );
    savers.set(id, saver);
    return saver;
  };
  return {
    async read(attempt) {
      const found = (await notes.list(build, kind)).find(({ name }) => name === attempt);
      return found && keptSchema.parse(found.note);
    },
    write: (kept) => saverOf(kept.id)(kept),
    async remove(attempt) {
      await saverOf(attempt)(null);
      savers.delete(attempt);
    },
    list: async () => (await notes.list(build, kind)).map(({ name }) => attemptIdSchema.parse(name)),
  };
}
