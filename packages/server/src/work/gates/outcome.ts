import { type Check, SlipwayError } from "@slipway/contract";
import type { CheckerAnswer } from "./answers.ts";
import { cut } from "./findings.ts";

/** The outcome of a check. The text says what was done and seen, and nothing of what the check compares it with. */
export interface Outcome {
  readonly ok: boolean;
  readonly text: string;
}

export type CheckOf<T extends Check["type"]> = Extract<Check, { readonly type: T }>;

type Step = CheckOf<"browser">["steps"][number];
type Failed = Extract<CheckerAnswer, { readonly type: "failed" }>;

const maxPageCharacters = 3000;
const maxErrorsCharacters = 2000;

/**
 * Names what is operated, so that an agent can build it. Never names what has to be seen: an app could show it without
 * doing what it stands for.
 */
export function browserOutcome({ steps, viewport, appearance }: CheckOf<"browser">, answer: CheckerAnswer): Outcome {
  const where = `In a browser, on a ${viewport === "phone" ? "phone" : "desktop"}`;
  if (answer.type === "passed") {
    const unjudged = appearance === null ? "" : " How it looks was not judged.";
    return { ok: true, text: `${where}: all ${steps.length} steps passed.${unjudged}` };
  }
  if (answer.type !== "failed") throw new SlipwayError("exec_failed", "the checker answered a different check");
  const before = steps.slice(0, answer.step).map((step, index) => `${index + 1}. ${done(step)}`);
  const text = [
    `${where}:`,
    ...before,
    `${answer.step + 1}. ${failed(steps[answer.step], answer)}`,
    ...(answer.errors.length > 0 ? [`Errors of the page:\n${cut(answer.errors.join("\n"), maxErrorsCharacters)}`] : []),
    ...(answer.page !== "" ? [`The page at that moment:\n${cut(answer.page, maxPageCharacters)}`] : []),
  ];
  return { ok: false, text: text.join("\n") };
}

function done(step: Step): string {
  switch (step.action) {
    case "open":
      return `${step.path} was opened.`;
    case "reload":
      return "The page was reloaded.";
    case "press":
      return `The key ${step.key} was pressed.`;
    case "click":
      return `The ${named(step)} was clicked.`;
    case "fill":
      return `Something was typed into the ${named(step)}.`;
    case "choose":
      return `Something was chosen in the ${named(step)}.`;
    case "see":
      return `A ${step.target.role} that must be there was visible.`;
    case "see-nothing-of":
      return `A ${step.target.role} that must be gone was not visible.`;
  }
}

function failed(step: Step | undefined, { why, detail }: Failed): string {
  if (why === "stuck" || step === undefined) return "The page stopped answering.";
  switch (step.action) {
    case "open":
    case "reload":
      return `${step.action === "open" ? step.path : "The page"} could not be loaded: ${detail}`;
    case "press":
      return `The key ${step.key} could not be pressed.`;
    case "see":
      return `A ${step.target.role} that must be there was not visible.`;
    case "see-nothing-of":
      return `A ${step.target.role} that must be gone was visible.`;
    default:
      if (why === "missing") return `There was no visible ${named(step)}.`;
      return `The ${named(step)} could not be used (${step.action}): ${detail}`;
  }
}

function named({ target }: Extract<Step, { readonly action: "click" | "fill" | "choose" }>): string {
  return `${target.role} "${target.name}"`;
}

type Metric = CheckOf<"performance">["metric"];

const metrics: Readonly<Record<Metric, { readonly what: string; readonly unit: string }>> = {
  firstByteMs: { what: "The first byte arrived after", unit: " ms" },
  largestPaintMs: { what: "The largest part was painted after", unit: " ms" },
  interactionMs: { what: "An interaction took effect after", unit: " ms" },
  transferKilobytes: { what: "It transferred", unit: " kilobytes" },
  layoutShift: { what: "The layout shifted by", unit: "" },
};

export function performanceOutcome({ path, metric, atMost }: CheckOf<"performance">, answer: CheckerAnswer): Outcome {
  if (answer.type === "failed") {
    const how = answer.why === "stuck" ? "stopped answering" : "could not be loaded";
    return { ok: false, text: `${path} ${how} in a browser.` };
  }
  if (answer.type !== "measured") throw new SlipwayError("exec_failed", "the checker answered a different check");
  const values = answer.values.filter((value) => value !== null).toSorted((a, b) => a - b);
  const median = values[Math.floor(values.length / 2)];
  if (median === undefined || values.length < answer.values.length) {
    return { ok: false, text: `${path} was opened in a browser, but there was nothing to measure: the page is empty.` };
  }
  const { what, unit } = metrics[metric];
  const often = values.length === 1 ? "once" : `${values.length} times`;
  const middle = values.length === 1 ? "" : " (median)";
  const seen = `${path} was opened ${often} in a browser. ${what} ${round(median)}${unit}${middle}`;
  return { ok: median <= atMost, text: `${seen}; the limit is ${atMost}${unit}.` };
}

function round(value: number): number {
  return Math.round(value * 100) / 100;
}
