import type { BuildId } from "@slipway/contract";
import type { LeaseHolder } from "@slipway/engine";

/**
 * Wakes builds for their turns. It holds nothing that is not in the store: what it loses, a sweep of the coordinator drives
 * on in the next generation.
 */
export interface Drive extends AsyncDisposable {
  /** Ends what has driven the build, then drives it here, in this generation: one turn at once, the next when it is due. */
  drive(build: BuildId, generation: number): Promise<void>;
  /** Makes the next turn due that was to wait for this bell. One that is old or unknown rings for nobody. */
  ring(bell: string): Promise<void>;
}

export interface DriveParts {
  /** Of this server among those that share the store. It holds the leases. */
  readonly name: string;
  readonly takeTurn: TakeTurn;
  readonly warn: (message: string) => void;
}

export type OpenDrive = (parts: DriveParts) => Promise<Drive>;

/** One turn. `bell` wakes the build from now on. Nothing long happens in it, and it may be taken again. */
export type TakeTurn = (build: BuildId, by: LeaseHolder, bell: string) => Promise<DriveTurn>;
export type DriveTurn = { readonly over: true } | { readonly over: false; readonly waitMs: number };
