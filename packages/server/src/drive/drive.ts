import type { BuildId } from "@slipway/contract";
import type { LeaseHolder } from "@slipway/engine";

/**
 * Wakes builds for their turns. Its state is disposable: a sweep of the coordinator drives what it loses in the next
 * generation.
 */
export interface Drive extends AsyncDisposable {
  /** Ends what drove the build before, then drives it in this generation: one turn at once, each next one when due. */
  drive(build: BuildId, generation: number): Promise<void>;
  /** Makes the turn that waits for this bell due now. Ignores old and unknown bells. */
  ring(bell: string): Promise<void>;
}

export interface DriveParts {
  /** This server's name among those that share the store: the holder of its leases. */
  readonly name: string;
  readonly takeTurn: TakeTurn;
  readonly warn: (message: string) => void;
}

export type OpenDrive = (parts: DriveParts) => Promise<Drive>;

/** Takes one short turn, which may be repeated. `bell` wakes the build from now on. */
export type TakeTurn = (build: BuildId, by: LeaseHolder, bell: string) => Promise<DriveTurn>;
export type DriveTurn = { readonly over: true } | { readonly over: false; readonly waitMs: number };
