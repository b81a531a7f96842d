import type { Finding } from "@slipway/contract";
import type { MergingInput, SettledOffer } from "../ports/merging.ts";
import type { MergeAction } from "./actions.ts";
import type { Candidate, MergeQueue } from "./state.ts";

interface Settling {
  readonly input: MergingInput;
  readonly before: MergeQueue;
  /** With what was reported, and nothing decided yet. */
  readonly observed: MergeQueue;
  readonly actions: readonly MergeAction[];
}

const maxPathsTold = 50;

/** What became of offers: those that are merged or on main already, and those that go back to their attempts. */
export function settledOffers({ input, before, observed, actions }: Settling): readonly SettledOffer[] {
  const isNew = (task: string) => observed.merged.includes(task) && !before.merged.includes(task);
  const merged = before.candidates.filter(({ task }) => isNew(task));
  return [
    ...merged.flatMap((candidate) => mergedOffer(input, candidate)),
    ...actions.flatMap((action) => settledBy(input, observed, action)),
  ];
}

function mergedOffer(input: MergingInput, candidate: Candidate): readonly SettledOffer[] {
  const told = input.reports.find((one) => one.type === "merge.ended" && one.data.candidate === candidate.id);
  const fix = told?.type === "merge.ended" ? told.data.fix : undefined;
  return offerOf(input, candidate).map((offer) => ({ ...offer, type: "merged", fix }) as const);
}

function settledBy(input: MergingInput, observed: MergeQueue, action: MergeAction): readonly SettledOffer[] {
  if (action.type !== "reject" && action.type !== "return-conflict" && action.type !== "satisfy") return [];
  const candidate = observed.candidates.find(({ id }) => id === action.candidate);
  if (candidate === undefined) return [];
  if (action.type === "satisfy") {
    return offerOf(input, candidate).map((offer) => ({ ...offer, type: "satisfied", main: action.main }) as const);
  }
  const main = observed.main;
  const findings = action.type === "reject" ? findingsOf(action, main.tree) : [conflictFinding(action.paths)];
  const back = { findings, main: main.commit, unchanged: action.type === "reject" && action.unchanged };
  return offerOf(input, candidate).map((offer) => ({ ...offer, type: "returned", ...back }) as const);
}

/** After what was found: the first of it is what is said of the offer elsewhere. */
const sameAgain =
  "Nothing has changed in your files since this gate refused them: it was not run again, and what it found still stands.";
const nothingNew = "There is nothing in your work that main has not. It is main that was looked at for your task.";

function findingsOf(
  { gate, tree, broken, unchanged, findings }: Extract<MergeAction, { type: "reject" }>,
  mainTree: string,
): readonly Finding[] {
  if (broken)
    return [{ gate, text: "This gate could not be run on your work, several times over: nothing was found." }];
  const found = findings.length > 0 ? findings : [{ gate, text: "It fails, and says nothing about why." }];
  if (unchanged) return [...found, { gate, text: sameAgain }];
  return tree === mainTree ? [...found, { gate, text: nothingNew }] : found;
}

function conflictFinding(paths: readonly string[]): Finding {
  const told = paths.slice(0, maxPathsTold).join(", ");
  const where = paths.length === 0 ? "git can not merge them" : `both have changed ${told}`;
  return { gate: "compatibility", text: `Main has moved on, and your work conflicts with it: ${where}.` };
}

/** The attempt's own number for what the candidate came from. */
function offerOf(
  { attempts, candidates, reports }: MergingInput,
  { id, attempt }: Candidate,
): readonly Pick<SettledOffer, "task" | "attempt" | "offer">[] {
  const owner = attempts.find((one) => one.id === attempt);
  if (owner === undefined) return [];
  const told = reports.find((report) => report.type === "candidate.offered" && report.data.candidate === id);
  const record = candidates.find((one) => one.id === id);
  const offer = told?.type === "candidate.offered" ? told.data.offer : Number(record?.details["offer"] ?? 0);
  return [{ task: owner.task, attempt: owner.number, offer }];
}
