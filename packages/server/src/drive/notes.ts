import type { BuildId } from "@slipway/contract";
import type { NoteWork, Store } from "@slipway/engine";

/** Writes notes of builds as the driver that this server was last: when another server drives a build by now, its lease fences them off. */
export interface Notes {
  readonly note: NoteWork;
  /** This server drives the build from now on. */
  drives(build: BuildId, generation: number): void;
}

export function createNotes({ notes, leases }: Pick<Store, "notes" | "leases">, holder: string): Notes {
  const generations = new Map<BuildId, number>();
  return {
    async note(build, changes) {
      // A build that ended before this process began has nobody to drive it.
      const generation = generations.get(build) ?? (await leases.find(build)).generation;
      await notes.write(build, { holder, generation }, changes);
    },
    drives: (build, generation) => void generations.set(build, generation),
  };
}
