import { type CheckPlace, compareIds, type Finding, type Gate } from "@slipway/contract";
import type { ReportOf } from "../ports/reports.ts";
import { aloneOf, type Candidate, type GateResult, type Judged, type MergeQueue } from "./state.ts";

/** After this many consecutive runs that broke, the candidate is what breaks them. */
const maxErrors = 3;
/** A full disk, or a provider or registry that is away, is waited out as attempts do. */
const maxTroubles = 10;
const firstWaitMs = 15_000;
const maxWaitMs = 600_000;

/** `doubted`: it failed once, and runs again before that is believed. */
type Standing = "open" | "doubted" | "passed" | "failed" | "broken";

/** What is known about gates and what they ran on. */
export interface Results {
  standing(gate: string, on: Judged): Standing;
  of(gate: string, on: Judged): GateResult | undefined;
  /** Of the gates that have not passed, those of the lowest rank. */
  next(gates: readonly Gate[], on: Judged): readonly Gate[];
  /** The first that does not pass. With `doubted` ones, or without. */
  failed(gates: readonly Gate[], on: Judged, including?: "doubted"): Gate | undefined;
}

export function resultsOf({ results }: MergeQueue): Results {
  const known = new Map(results.map((result) => [keyOf(result.gate, result), result]));
  const of = (gate: string, on: Judged) => known.get(keyOf(gate, on));
  const standing = (gate: string, on: Judged) => standingOf(of(gate, on));
  return {
    of,
    standing,
    next(gates, on) {
      const left = gates.filter(({ name }) => standing(name, on) !== "passed");
      const rank = Math.min(...left.map((gate) => gate.rank));
      return left.filter((gate) => gate.rank === rank);
    },
    failed: (gates, on, including) =>
      gates.find(({ name }) => {
        const now = standing(name, on);
        return now === "failed" || now === "broken" || now === including;
      }),
  };
}

function standingOf(result: GateResult | undefined): Standing {
  if (result === undefined) return "open";
  if (result.passed) return "passed";
  if (result.failures >= 2) return "failed";
  if (result.errors >= maxErrors || (result.trouble?.times ?? 0) > maxTroubles) return "broken";
  return result.failures === 1 ? "doubted" : "open";
}

type GateEnd = Pick<ReportOf<"gate.ended">["data"], "verdict" | "findings" | "trouble"> &
  Partial<Pick<ReportOf<"gate.ended">["data"], "parts">>;

/** The results with the end of one more run. A run that broke is tried again after a wait that doubles each time. */
export function withEnd(
  results: readonly GateResult[],
  { gate, tree, tasks }: Pick<GateResult, "gate" | "tree" | "tasks">,
  { verdict, findings, parts = [], trouble }: GateEnd,
  nowMs: number,
): readonly GateResult[] {
  const key = keyOf(gate, { tree, tasks });
  const isIt = (result: GateResult) => keyOf(result.gate, result) === key;
  const before = results.find(isIt) ?? fresh(gate, { tree, tasks });
  const ended = { ...before, errors: 0, trouble: null };
  const times = before.trouble?.times ?? 0;
  const after = {
    passed: { ...ended, passed: true },
    failed: {
      ...ended,
      failures: before.failures + 1,
      findings: gistOf(findings),
      failedAtMs: nowMs,
      failedAt: sameFailure(before, onlyFailure(parts)),
    },
    error:
      trouble === undefined
        ? { ...before, errors: before.errors + 1, trouble: null, notBeforeMs: nowMs + waitMs(before.errors) }
        : { ...before, trouble: { times: times + 1, reason: trouble }, notBeforeMs: nowMs + waitMs(times) },
  }[verdict];
  return [...results.filter((result) => !isIt(result)), after];
}

/** What one of two runs did not fail says more of the run than of the candidate. */
function sameFailure({ failures, failedAt }: GateResult, now: CheckPlace | null): CheckPlace | null {
  return failures === 0 || JSON.stringify(failedAt) === JSON.stringify(now) ? now : null;
}

function onlyFailure(parts: NonNullable<GateEnd["parts"]>): CheckPlace | null {
  const [first, ...others] = parts.filter(({ verdict }) => verdict !== "passed");
  return first?.failedAt && others.length === 0 ? { criterion: first.name, ...first.failedAt } : null;
}

function waitMs(before: number): number {
  return Math.min(firstWaitMs * 2 ** before, maxWaitMs);
}

/** The queue is written in every turn, so it keeps only the gist; the records have all findings. */
function gistOf(findings: readonly Finding[]): readonly Finding[] {
  return findings.slice(0, 8).map((finding) => ({ ...finding, text: finding.text.slice(0, 2000) }));
}

function fresh(gate: string, on: Judged): GateResult {
  const none = { failures: 0, errors: 0, trouble: null, notBeforeMs: 0, findings: [], failedAtMs: 0, failedAt: null };
  return { gate, ...on, passed: false, ...none };
}

export function gatesOn({ gates }: MergeQueue, on: Gate["on"]): readonly Gate[] {
  return gates.filter((gate) => gate.on === on).sort((a, b) => a.rank - b.rank || compareIds(a.name, b.name));
}

/** Whether it has passed all gates that look at it alone. */
export function isReady(queue: MergeQueue, results: Results, candidate: Candidate): boolean {
  return results.next(gatesOn(queue, "candidate"), aloneOf(candidate)).length === 0;
}

export function keyOf(gate: string, { tree, tasks }: Judged): string {
  return [gate, tree, tasks].join("\n");
}
