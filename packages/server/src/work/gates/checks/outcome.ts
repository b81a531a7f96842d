import { type CheckOf, type PerformanceMetric, partsOf, SlipwayError } from "@slipway/contract";
import { cut } from "../findings.ts";
import type { CheckerAnswer } from "./answers.ts";
import type { ToldStep, ToldVisit } from "./browser-job.ts";

/** The outcome of a check. The text says what was done and seen, and nothing of what the check compares it with. */
export interface Outcome {
  readonly ok: boolean;
  readonly text: string;
  /** Index of the step that failed. */
  readonly step?: number;
}

export function toldInOrder(told: readonly string[]): string {
  return told.length === 1 ? told.join("") : told.map((text, index) => `${index + 1}. ${text}`).join("\n");
}

type Failed = Extract<CheckerAnswer, { readonly type: "failed" }>;

const maxPageCharacters = 3000;
const maxErrorsCharacters = 2000;

export function visitOutcome({ steps, viewport, appearance }: ToldVisit, answer: CheckerAnswer): Outcome {
  const where = `In a browser, on a ${viewport === "phone" ? "phone" : "desktop"}`;
  if (answer.type === "passed") {
    const unjudged = appearance === null ? "" : " How it looks was not judged.";
    return { ok: true, text: `${where}: all ${steps.length} steps passed.${unjudged}` };
  }
  if (answer.type !== "failed") throw new SlipwayError("exec_failed", "the checker answered a different check");
  const before = steps.slice(0, answer.step).map(({ done }, index) => `${index + 1}. ${done}`);
  const text = [
    `${where}:`,
    ...before,
    `${answer.step + 1}. ${failed(steps[answer.step], answer)}`,
    ...(answer.errors.length > 0 ? [`Errors of the page:\n${cut(answer.errors.join("\n"), maxErrorsCharacters)}`] : []),
    ...(answer.page !== "" ? [`The page at that moment:\n${cut(answer.page, maxPageCharacters)}`] : []),
  ];
  // Two hangs are not known to be the same one.
  return { ok: false, text: text.join("\n"), ...(answer.why !== "stuck" && { step: answer.step }) };
}

function failed(told: ToldStep | undefined, { why, detail, page }: Failed): string {
  if (why === "stuck" || told === undefined) return "The page stopped answering.";
  const { step, unmet, done } = told;
  if (step.action === "press") return `The key ${step.key} could not be pressed.`;
  if (step.action === "open" || step.action === "reload" || step.action === "switch") {
    return `${step.action === "open" ? step.path : "The page"} could not be loaded: ${detail}`;
  }
  if (why === "refused") return `This could not be done: ${done} ${detail}`;
  if (why === "there") return unmet;
  const instead = step.target.role === "text" ? saidInstead(page, told.like) : controlsInstead(page, step.target.role);
  return [unmet, ...instead].join(" ");
}

const maxNamed = 10;
const maxNameCharacters = 80;
const maxValueCharacters = 40;

/** The names of a role's elements in an accessibility tree. */
function controlsInstead(page: string, role: string): string[] {
  const roles = role === "textbox" ? "textbox|searchbox|spinbutton" : role === "image" ? "img" : role;
  const found = [...page.matchAll(new RegExp(`^\\s*- '?(?:${roles}) ("(?:[^"\\\\]|\\\\.)*")`, "gm"))];
  const names = [...new Set(found.map(([, name = ""]) => cut(name, maxNameCharacters)))];
  if (names.length === 0) return [`There is no ${role} with a name.`];
  const rest = names.length > maxNamed ? ` and ${names.length - maxNamed} more` : "";
  return [`Of this role the page has ${names.slice(0, maxNamed).join(", ")}${rest}.`];
}

/** The message with other values, where a line of the page says that. */
function saidInstead(page: string, like: string | undefined): string[] {
  if (like === undefined) return [];
  const all = partsOf(like);
  const texts = all.flatMap((part) => ("text" in part ? [part.text.trim().toLowerCase()] : []));
  const [first = {}, last = {}] = [all[0], all.at(-1)];
  for (const line of page.split("\n")) {
    const span = spanOf(line.toLowerCase(), texts);
    if (span === undefined) continue;
    // A value at an end is the word that is there.
    const before =
      "variable" in first
        ? (/[^\s"]{1,40}\s*$/.exec(line.slice(0, span[0]).slice(-maxValueCharacters))?.[0] ?? "")
        : "";
    const after =
      "variable" in last ? (/^\s*[^\s"]{1,40}/.exec(line.slice(span[1], span[1] + maxValueCharacters))?.[0] ?? "") : "";
    const said = `${before}${line.slice(...span)}${after}`.trim();
    return [`The page says ${JSON.stringify(cut(said, maxNameCharacters))}.`];
  }
  return [];
}

/** Where these parts are in a line, in order and not far from each other. */
function spanOf(line: string, parts: readonly string[]): [from: number, to: number] | undefined {
  const [first = ""] = parts;
  const from = first === "" ? -1 : line.indexOf(first);
  if (from < 0) return undefined;
  let to = from + first.length;
  for (const part of parts.slice(1)) {
    const at = line.indexOf(part, to);
    if (at < 0 || at > to + maxValueCharacters) return undefined;
    to = at + part.length;
  }
  return [from, to];
}

const metrics: Readonly<Record<PerformanceMetric, { readonly what: string; readonly unit: string }>> = {
  firstByteMs: { what: "The first byte arrived after", unit: " ms" },
  largestPaintMs: { what: "The largest part was painted after", unit: " ms" },
  interactionMs: { what: "An interaction took effect after", unit: " ms" },
  transferKilobytes: { what: "It transferred", unit: " kilobytes" },
  layoutShift: { what: "The layout shifted by", unit: "" },
};

export function measureOutcome(
  { path, metric, atMost }: Pick<CheckOf<"performance">, "path" | "metric" | "atMost">,
  answer: CheckerAnswer,
): Outcome {
  if (answer.type === "failed") {
    const how = { stuck: "stopped answering", missing: "does not show what the surface has there" }[
      answer.why as string
    ];
    return { ok: false, text: `${path} ${how ?? "could not be loaded"} in a browser.`, step: 0 };
  }
  if (answer.type !== "measured") throw new SlipwayError("exec_failed", "the checker answered a different check");
  const values = answer.values.filter((value) => value !== null).toSorted((a, b) => a - b);
  const median = values[Math.floor(values.length / 2)];
  if (median === undefined || values.length < answer.values.length) {
    return {
      ok: false,
      text: `${path} was opened in a browser, but there was nothing to measure: the page is empty.`,
      step: 0,
    };
  }
  const { what, unit } = metrics[metric];
  const often = values.length === 1 ? "once" : `${values.length} times`;
  const middle = values.length === 1 ? "" : " (median)";
  const seen = `${path} was opened ${often} in a browser. ${what} ${round(median)}${unit}${middle}`;
  return { ok: median <= atMost, text: `${seen}; the limit is ${atMost}${unit}.`, step: 0 };
}

function round(value: number): number {
  return Math.round(value * 100) / 100;
}
