import type { BuildId, BuildStatus } from "@slipway/contract";
import { z } from "zod";
import type { BuildLedger } from "./ledger.ts";
import type {
  AgentActionRecord,
  AttemptRecord,
  BuildRecord,
  CandidateRecord,
  CheckpointRecord,
  CheckRecord,
  DisputeRecord,
  GateResultRecord,
  IntentRecord,
  MergeRecord,
  NewBuild,
  PatternRecord,
  PlanRecord,
  SandboxRecord,
  TaskRecord,
  WorkNote,
} from "./records.ts";

/** The truth about builds. A write returns once it is durable, and is atomic. */
export interface Store {
  readonly builds: Builds;
  readonly events: BuildEvents;
  readonly leases: Leases;
  readonly ledger: BuildLedger;
  readonly notes: WorkNotes;
  readonly actions: AgentActions;
  readonly patterns: Patterns;
}

export interface Builds {
  /**
   * Creates the build with its first event and an account of this budget. The same again returns the existing build;
   * another build under the id fails with `idempotency_conflict`.
   */
  create(build: NewBuild, budgetMicroUsd: number, event: NewEvent): Promise<BuildRecord>;
  /** Fails with `build_not_found`. */
  get(build: BuildId): Promise<BuildRecord>;
  /** Newest first. */
  list(filter: BuildFilter): Promise<readonly BuildRecord[]>;
  /** A consistent snapshot for a turn. It grows with the plan and with what runs, not with what has ended. */
  state(build: BuildId): Promise<StoredBuild>;
  /** Records of a kind, ended or not, by their key. */
  records<K extends RecordKind>(build: BuildId, kind: K, page?: RecordPage): Promise<readonly BuildRecords[K][]>;
  /**
   * Applies one turn of the build's driver. Fails with `lease_lost` when another driver has the lease, with
   * `build_moved` when the build is no longer at this turn, and with `record_final` when a final record exists with
   * other content.
   */
  apply(build: BuildId, by: LeaseHolder, turn: Turn): Promise<{ readonly lastEvent: number }>;
}

export interface BuildFilter {
  readonly account?: string;
  readonly project?: string;
  readonly statuses?: readonly BuildStatus[];
  /** Only builds that are older than this one. */
  readonly before?: BuildId;
  readonly limit?: number;
}

export interface Page {
  readonly offset?: number;
  readonly limit?: number;
}

export interface RecordPage extends Page {
  /** From the greatest key down: newest first for records with an id. */
  readonly isReversed?: boolean;
}

/** The most that a page holds. */
export const maxPage = 1000;

export interface BuildRecords {
  readonly intents: IntentRecord;
  readonly checks: CheckRecord;
  readonly plans: PlanRecord;
  readonly tasks: TaskRecord;
  readonly attempts: AttemptRecord;
  readonly sandboxes: SandboxRecord;
  readonly checkpoints: CheckpointRecord;
  readonly candidates: CandidateRecord;
  readonly gateResults: GateResultRecord;
  readonly merges: MergeRecord;
  readonly disputes: DisputeRecord;
}
export type RecordKind = keyof BuildRecords;

export interface StoredBuild {
  readonly build: BuildRecord;
  readonly tasks: readonly TaskRecord[];
  /** Of these, those that have not ended. */
  readonly attempts: readonly AttemptRecord[];
  readonly sandboxes: readonly SandboxRecord[];
  readonly candidates: readonly CandidateRecord[];
  /** The last one of each attempt that has not ended. */
  readonly checkpoints: readonly CheckpointRecord[];
}

/** Who applies a turn: the lease's holder, in the lease's generation. */
export interface LeaseHolder {
  readonly holder: string;
  readonly generation: number;
}

export interface Turn {
  /** The turn of the build record that the decision was made on. */
  readonly turn: number;
  /** The last event that the decision includes. */
  readonly through: number;
  readonly build?: Partial<Pick<BuildRecord, "status" | "reason" | "priority" | "endedAt" | "details">>;
  /** New budget of the build's account. */
  readonly budgetMicroUsd?: number;
  /** Whole records: they replace what has the same key. */
  readonly records?: { readonly [K in RecordKind]?: readonly BuildRecords[K][] };
  readonly events: readonly NewEvent[];
}

/** What happened in a build, as users see it and the build loop reads it. */
export const newEventSchema = z.strictObject({
  type: z
    .string()
    .max(64)
    .regex(/^[a-z][a-z-]*\.[a-z][a-z_]*$/, "expected subject.happened"),
  /** A key is unique: its event is kept once. */
  key: z.string().min(1).max(256).nullable().default(null),
  data: z.record(z.string(), z.json()).default({}),
});
export type NewEvent = Readonly<z.input<typeof newEventSchema>>;

export interface BuildEvent extends Readonly<z.output<typeof newEventSchema>> {
  /** From 1, without gaps; an event becomes visible after all with lower numbers. */
  readonly sequence: number;
  readonly at: number;
  /** `report`: the world tells the build. `decision`: the build tells the world. */
  readonly source: EventSource;
}
export type EventSource = "report" | "decision";

export interface BuildEvents {
  /** Anybody may report; no lease is needed. Returns the last sequence number. Skips known keys. */
  report(build: BuildId, events: readonly NewEvent[]): Promise<number>;
  read(
    build: BuildId,
    after: number,
    options?: { readonly source?: EventSource; readonly limit?: number },
  ): Promise<readonly BuildEvent[]>;
  /** The one with this key. */
  find(build: BuildId, key: string): Promise<BuildEvent | undefined>;
}

export interface Lease extends Pick<LeaseHolder, "generation"> {
  /** Null: nobody drives the build. */
  readonly holder: string | null;
  /** Until it expires, by the database's clock; not positive: it has expired. */
  readonly leftMs: number;
  /** Wakes the holder: whoever reports something rings it. */
  readonly bell: string | null;
}

export interface Leases {
  /**
   * Takes or renews the lease. A higher generation gets it at once. The same generation keeps it; another holder gets
   * it in that generation once it has expired. Undefined: another holder has it. Each applied turn renews it, too.
   */
  take(build: BuildId, by: LeaseHolder, leaseMs: number, bell?: string | null): Promise<Lease | undefined>;
  find(build: BuildId): Promise<Lease>;
  /**
   * Builds without a driver that have not ended, or ended without a release: somebody has to take over. Includes
   * those of `holder`, which has restarted and knows nothing of them.
   */
  expired(options?: { readonly holder?: string; readonly limit?: number }): Promise<readonly BuildId[]>;
  /** Builds of this holder with reports that no turn has read. */
  unheard(holder: string, limit?: number): Promise<readonly BuildId[]>;
  release(build: BuildId, by: LeaseHolder): Promise<void>;
}

/** What work keeps about itself, so that any server can go on with it. Only the work that wrote a note knows what is in it. */
export interface WorkNotes {
  list(build: BuildId, kind: WorkNote["kind"]): Promise<readonly WorkNote[]>;
  /**
   * Writes what is not null and removes the rest, all or nothing. Fails with `lease_lost` unless `by` is the last that drove
   * the build: nobody else has taken the lease since, even if `by` has released it.
   */
  write(build: BuildId, by: LeaseHolder, notes: readonly NoteChange[]): Promise<void>;
}

export type NoteChange = Omit<WorkNote, "build">;
/** Writes notes as the one that drives the build here. Fails with `lease_lost` when another server has taken it. */
export type NoteWork = (build: BuildId, notes: readonly NoteChange[]) => Promise<void>;

export interface AgentActions {
  /** Skips known actions. */
  record(actions: readonly AgentActionRecord[]): Promise<void>;
  list(build: BuildId, page?: Page): Promise<readonly AgentActionRecord[]>;
}

export interface Patterns {
  /** The last fix of an error counts. */
  learn(pattern: PatternRecord): Promise<void>;
  find(project: string, signatures: readonly string[]): Promise<readonly PatternRecord[]>;
}
