import type { CreateSandbox, SandboxId, StateReason } from "@slipway/contract";
import type { Box } from "./boxes/boxes.ts";
import type { Use } from "./decide.ts";
import type { SandboxRecord } from "./record.ts";

/**
 * What a provider does for its keeper, which decides when. `R` is its record of a sandbox, `O` the origin of a
 * sandbox's files, `P` what it finds running. For everything that takes a box, the caller holds the box's queue.
 */
export interface Runtime<R extends SandboxRecord, O, P> {
  /** The longest that a start may last. Left out: as long as any. */
  readonly longestLifeMs?: number;
  /** Fails when there is no room for another sandbox. */
  requireRoom(): void;
  /** The files of the request's image. Builds what is missing. */
  originOf(request: CreateSandbox, signal: AbortSignal): Promise<O>;
  /** The record of a sandbox that starts from the files. */
  recordOf(common: SandboxRecord, origin: O): R;
  /** The sandbox's present files, for a snapshot or a fork. */
  capture(box: Box<R>, signal?: AbortSignal): Promise<Capture<O>>;

  /** Reserves what a start needs. */
  reserve(id: SandboxId): Launch<R>;
  /** Resolves when nothing of the sandbox runs, or did before. Its files may be lost. */
  end(box: Box<R>): Promise<void>;
  /** As `end`, and keeps the files for the next start. */
  stop(box: Box<R>): Promise<void>;
  /** What the record of a sandbox says that has ended. */
  readonly ended: Partial<R>;
  /** False when it was no longer due. Where sleep takes a while, it is asked again. */
  sleep(box: Box<R>, isDue: () => Promise<boolean>): Promise<boolean>;
  wake(box: Box<R>): Promise<void>;
  /** After its end: removes what is left of the sandbox. */
  removeFiles(id: SandboxId): Promise<void>;
  /** How many processes it has, where that is known. */
  processes(box: Box<R>): Promise<number>;
  use(box: Box<R>): Promise<Use>;
  /** A keep-alive has moved the sandbox's end. */
  extended?(box: Box<R>): Promise<void>;

  /** What runs of this keeper's sandboxes, or of those that have no record. */
  survey(): Promise<ReadonlyMap<SandboxId, P>>;
  /** Whether what the record says runs does run. */
  isUp(box: Box<R>, found: P | undefined): boolean;
  /** For a sandbox that seems to have ended by itself: whether it has. */
  isGone(box: Box<R>): Promise<boolean>;
  /** Why it ended by itself; null when nothing tells. */
  whyGone(box: Box<R>): Promise<StateReason | null>;
  /** Finishes what a crash cut short in the sandbox's files. */
  repair?(box: Box<R>): void;
  /** Takes over a sandbox from another keeper; false when it does not answer. */
  adopt(box: Box<R>, found: P | undefined): Promise<boolean>;
  /** Ends what was found; false when it had ended. */
  endFound(found: P): Promise<boolean>;
  /** Whose files are left. Those without a record are removed. */
  sandboxesWithFiles(): Iterable<SandboxId>;
}

/** A start that has what it needs. */
export interface Launch<R extends SandboxRecord> {
  /** What the record names before the start, so that a crash loses nothing. */
  readonly recorded: Partial<R>;
  /** Resolves when the sandbox accepts execs. */
  start(box: Box<R>, signal: AbortSignal): Promise<void>;
}

/** A sandbox's present files. Held from the garbage collector until disposed of. */
export interface Capture<O> extends Disposable {
  readonly origin: O;
  /** Storage that only these files take. */
  readonly bytes: number;
}
