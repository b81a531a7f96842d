import type { Bridge, NewEvent, Store, WorkingBuild } from "@slipway/engine";
import type { Gateway } from "@slipway/gateway";
import type { BuildRepository } from "../repository/repository.ts";
import type { KeptAttempts } from "./kept.ts";
import type { PlaceParts } from "./place.ts";
import type { Shared } from "./shared/shared.ts";

/** What an attempt gets from its build and from the server. */
export interface AttemptSurroundings extends PlaceParts {
  readonly build: WorkingBuild;
  readonly gateway: Pick<Gateway, "openRun" | "serve">;
  readonly store: Store;
  readonly bridge: Bridge;
  readonly kept: KeptAttempts;
  readonly shared: Shared;
  /** How many workers its lead may use. */
  readonly workers: number;
  readonly checkpointMs: number;
  /** Waits until ended attempts have left their sandboxes. */
  settled(): Promise<unknown>;
  /** Aborts when the server lets go of everything. */
  readonly closing: AbortSignal;
  readonly clock: { now(): number };
  /** The build's repository, with a main. Fails with the reason if there can be none. */
  repository(): Promise<BuildRepository>;
  report(events: readonly NewEvent[]): Promise<void>;
  warn(message: string): void;
}
