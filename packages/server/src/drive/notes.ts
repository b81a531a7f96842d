import type { BuildId } from "@slipway/contract";
import type { NoteWork, Store } from "@slipway/engine";

/** Writes notes in the generation that this server last drove. If another server drives the build now, its lease rejects them. */
export function createNotes({ notes, leases }: Pick<Store, "notes" | "leases">, holder: string) {
  const generations = new Map<BuildId, number>();
  const note: NoteWork = async (build, changes) => {
    // Nobody drives a build that ended before this process started.
    const generation = generations.get(build) ?? (await leases.find(build)).generation;
    await notes.write(build, { holder, generation }, changes);
  };
  return {
    note,
    /** This server drives the build from now on. */
    drives: (build: BuildId, generation: number) => void generations.set(build, generation),
  };
}
