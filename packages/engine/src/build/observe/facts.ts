import type { AttemptId } from "@slipway/contract";
import type { SettledOffer } from "../../ports/merging.ts";
import type { BuildRecord, PatternRecord } from "../../ports/records.ts";
import type { Report } from "../../ports/reports.ts";
import type { BuildRecords, RecordKind } from "../../ports/store.ts";
import type { BuildState } from "../state.ts";

/** What a build takes in: reports, and what its own turn finds out. */
export type Fact =
  | Report
  /** Everything that the ledger has for the build. */
  | { readonly type: "ledger.spent"; readonly data: { readonly microUsd: number } }
  | { readonly type: "offer.settled"; readonly data: SettledOffer };

/** What the store knows beside the state, gathered before the facts are taken in: see known.ts. */
export interface Known {
  readonly build: Pick<BuildRecord, "id" | "account" | "project">;
  /** Ids by the attempt's name. */
  readonly attempts: ReadonlyMap<string, AttemptId>;
  /** Errors for which there is a known fix. */
  readonly patterns: ReadonlySet<string>;
  /** What there was before the build, as the draft reported it. */
  readonly start: BuildRecords["intents"]["intent"] | undefined;
  /** Of the first plan. */
  readonly intentHash: string;
}

/** The state with a fact in it, and what the fact adds beside the state. */
export interface Observed {
  readonly state: BuildState;
  readonly records?: readonly NewRecord[];
  readonly place?: readonly [attempt: string, place: Place];
  /** A fix to remember. */
  readonly learnt?: PatternRecord;
}

export type NewRecord = { [K in RecordKind]: { readonly kind: K; readonly record: BuildRecords[K] } }[RecordKind];

/** The sandbox and the run of an attempt. */
export type Place = Pick<BuildRecords["attempts"], "sandbox" | "run">;

/** Names an attempt and, with `respawn`, one of its lives. */
export interface Life {
  readonly task: string;
  readonly attempt: number;
  readonly respawn?: number | undefined;
}
