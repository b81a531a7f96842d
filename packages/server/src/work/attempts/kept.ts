import {
  type AttemptId,
  attemptIdSchema,
  type BuildId,
  commitSchema,
  createSaver,
  gpuSchema,
  sandboxIdSchema,
  slugSchema,
  snapshotIdSchema,
  taskOrderSchema,
} from "@slipway/contract";
import type { NoteWork, WorkNotes } from "@slipway/engine";
import { z } from "zod";

/** What a server needs to continue an attempt of another server. */
const keptSchema = z.strictObject({
  id: attemptIdSchema,
  task: slugSchema,
  number: z.int().min(1),
  /** The same for all runs of the attempt, which continue each other's work. */
  order: taskOrderSchema.omit({ bundle: true, fixModel: true }),
  /** What its sandbox must have. */
  gpu: gpuSchema.nullable().default(null),
  respawn: z.int().min(0),
  /** Counts runs in the same sandbox: another follows one that ran out of money. */
  part: z.int().min(0),
  /** Null: this life has none yet. */
  sandbox: sandboxIdSchema.nullable(),
  /** The last event of the run that was taken in. */
  heard: z.int().min(0),
  /** The build's budget when the run was refused money. */
  refusedMicroUsd: z.int().min(0).nullable(),
  /** Snapshots of its checkpoints, the latest last. */
  snapshots: z.array(snapshotIdSchema),
  checkpoints: z.int().min(0),
  /** The last offered commit. */
  offered: commitSchema.nullable(),
  /** The last commit taken from its branch, offered or not. */
  tip: commitSchema.nullable().default(null),
  /** The size of all offers and branches it has sent, taken or not. */
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

const kind = "attempt";

export function openKeptAttempts(build: BuildId, notes: Pick<WorkNotes, "list">, note: NoteWork): KeptAttempts {
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
