import { SlipwayError } from "@slipway/contract";
import type { PatternRecord } from "../../ports/records.ts";
import type { BuildRecords, RecordKind } from "../../ports/store.ts";
import { type BuildState, hasEnded } from "../state.ts";
import { observeAttempt, settle } from "./attempts.ts";
import type { Fact, Known, NewRecord, Observed, Place } from "./facts.ts";
import { type BuildOrder, order } from "./orders.ts";
import { observeRound, observeStage } from "./planning.ts";

/** What is known after some facts. */
export interface Intake {
  readonly state: BuildState;
  /** What is kept beside the state. */
  readonly records: { readonly [K in RecordKind]?: readonly BuildRecords[K][] };
  /** By the attempt's name. */
  readonly places: ReadonlyMap<string, Place>;
  readonly learnt: readonly PatternRecord[];
}

/** Takes facts in, in order. */
export function takeIn(before: Intake, facts: readonly Fact[], known: Known, nowMs: number): Intake {
  return facts.reduce<Intake>((taken, fact) => {
    const { state, records = [], place, learnt } = observe(taken.state, fact, known, nowMs);
    return {
      state,
      records: records.reduce(keep, taken.records),
      places: place ? new Map([...taken.places, place]) : taken.places,
      learnt: learnt ? [...taken.learnt, learnt] : taken.learnt,
    };
  }, before);
}

/** The state with one fact in it. A fact that comes twice, too late, or about what is gone changes nothing. */
export function observe(state: BuildState, fact: Fact, known: Known, nowMs: number): Observed {
  if (hasEnded(state)) return { state };
  switch (fact.type) {
    case "order.pause":
    case "order.resume":
    case "order.cancel":
    case "order.budget":
      return { state: obey(state, fact, nowMs) };
    case "intent.drafted":
    case "intent.edited":
    case "intent.released":
    case "intent.locked":
    case "plan.made":
    case "stage.failed":
      return observeStage(state, fact, known, nowMs);
    case "attempt.heard":
    case "attempt.offered":
    case "attempt.ended":
    case "candidate.offered":
    case "candidate.refused":
      return observeAttempt(state, fact, known, nowMs);
    case "offer.settled":
      return settle(state, fact.data, known, nowMs);
    case "satisfaction.checked":
    case "remaining.planned":
    case "remaining.refused":
    case "remaining.unplannable":
      return observeRound(state, fact, known);
    case "sandbox.changed":
      return ofBuild(state, known, { kind: "sandboxes", record: fact.data.sandbox });
    case "checkpoint.made":
      return ofBuild(state, known, { kind: "checkpoints", record: fact.data.checkpoint });
    case "ledger.spent":
      return { state: { ...state, spentMicroUsd: Math.max(state.spentMicroUsd, fact.data.microUsd) } };
    case "compute.refused": {
      const refusedMicroUsd = Math.max(state.refusedMicroUsd ?? 0, fact.data.budgetMicroUsd);
      return { state: { ...state, refusedMicroUsd } };
    }
    // The merge queue's, and what is only told.
    case "dispute.settled":
    case "order.dispute":
    case "attempt.progress":
    case "main.made":
    case "merge.tested":
    case "gate.ended":
    case "merge.ended":
    case "preview.ready":
    case "preview.failed":
    case "remote.pushed":
    case "remote.failed":
      return { state };
  }
}

/** An order that cannot be obeyed was refused when it was given, or has come too late. */
function obey(state: BuildState, given: BuildOrder, nowMs: number): BuildState {
  try {
    return order(state, given, nowMs);
  } catch (error) {
    if (error instanceof SlipwayError) return state;
    throw error;
  }
}

function ofBuild(state: BuildState, { build }: Known, added: NewRecord): Observed {
  return added.record.build === build.id ? { state, records: [added] } : { state };
}

/** Of records with the same key the last one counts. */
function keep(records: Intake["records"], { kind, record }: NewRecord): Intake["records"] {
  const isSame = (one: object) => kind === "intents" || ("id" in one && "id" in record && one.id === record.id);
  const others = (records[kind] ?? []).filter((one) => !isSame(one));
  return { ...records, [kind]: [...others, record] };
}
