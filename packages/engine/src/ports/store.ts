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

/** What is true of builds. What writes answers after it is durable, and changes all or nothing. */
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
  /** With its first event and an account of this budget. The same again answers what is there; another build under the id fails with `idempotency_conflict`. */
  create(build: NewBuild, budgetMicroUsd: number, event: NewEvent): Promise<BuildRecord>;
  /** Fails with `build_not_found`. */
  get(build: BuildId): Promise<BuildRecord>;
  /** Newest first. */
  list(filter: BuildFilter): Promise<readonly BuildRecord[]>;
  /** What a turn decides on, as of one moment. It grows with the plan and with what runs, not with what is over. */
  state(build: BuildId): Promise<StoredBuild>;
  /** Records of a kind, over or not, by their key. */
  records<K extends RecordKind>(build: BuildId, kind: K, page?: RecordPage): Promise<readonly BuildRecords[K][]>;
  /**
   * One turn of who drives the build. Fails with `lease_lost` when another one has the lease, and with `build_moved` when
   * the build is no longer at this turn. A final record that is there with other content fails with `record_final`.
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
  /** From the greatest key on: of what has an id, the newest first. */
  readonly isReversed?: boolean;
}

/** What a page holds at most. */
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
  /** The turn that the decision was made on, as the build record says. */
  readonly turn: number;
  /** The last event that the decision has taken in. */
  readonly through: number;
  readonly build?: Partial<Pick<BuildRecord, "status" | "reason" | "priority" | "endedAt" | "details">>;
  /** Of the build's account, from now on. */
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
  /** An event is there once under its key. */
  key: z.string().min(1).max(256).nullable().default(null),
  data: z.record(z.string(), z.json()).default({}),
});
export type NewEvent = Readonly<z.input<typeof newEventSchema>>;

export interface BuildEvent extends Readonly<z.output<typeof newEventSchema>> {
  /** From 1, without gaps; what has a number is visible after all that have lower ones. */
  readonly sequence: number;
  readonly at: number;
  /** `report`: the world tells the build loop. `decision`: the loop tells the world. */
  readonly source: EventSource;
}
export type EventSource = "report" | "decision";

export interface BuildEvents {
  /** Reports, by whomever; no lease is asked for. Answers the last sequence number. Known keys are passed over. */
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
  /** Until it runs out, by the database's clock; not positive: it has. */
  readonly leftMs: number;
  /** What wakes the holder: whoever reports something rings it. */
  readonly bell: string | null;
}

export interface Leases {
  /**
   * Takes or renews the lease. A higher generation gets it at once. The same generation keeps it, and another holder gets
   * it in that generation when it has run out. Undefined: it is another one's. Each applied turn renews it, too.
   */
  take(build: BuildId, by: LeaseHolder, leaseMs: number, bell?: string | null): Promise<Lease | undefined>;
  find(build: BuildId): Promise<Lease>;
  /**
   * Builds that nobody drives, though they have not ended, or ended without a release: somebody has to take over. With
   * those of `holder`, who has come back and knows nothing of them.
   */
  expired(options?: { readonly holder?: string; readonly limit?: number }): Promise<readonly BuildId[]>;
  /** Builds of this holder to which something was reported that no turn has taken in. */
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
  /** An action that is there is passed over. */
  record(actions: readonly AgentActionRecord[]): Promise<void>;
  list(build: BuildId, page?: Page): Promise<readonly AgentActionRecord[]>;
}

export interface Patterns {
  /** The last fix of an error counts. */
  learn(pattern: PatternRecord): Promise<void>;
  find(project: string, signatures: readonly string[]): Promise<readonly PatternRecord[]>;
}
