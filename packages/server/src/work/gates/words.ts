import { SlipwayError } from "@slipway/contract";
import type { CheckerAnswer } from "./answers.ts";
import { cut } from "./findings.ts";
import type { CheckOf, Outcome } from "./outcome.ts";

type Step = CheckOf<"browser">["steps"][number];
type Failed = Extract<CheckerAnswer, { readonly type: "failed" }>;

const maxPageCharacters = 3000;
const maxErrorsCharacters = 2000;

/**
 * What is operated is named, so that it can be made. What has to be seen is not: an app could show it without doing
 * what it stands for.
 */
export function browserOutcome({ steps, viewport, appearance }: CheckOf<"browser">, answer: CheckerAnswer): Outcome {
  const where = `In a browser, on a ${viewport === "phone" ? "phone" : "desktop"}`;
  if (answer.type === "passed") {
    const unjudged = appearance === null ? "" : " How it looks was not judged.";
    return { ok: true, text: `${where}: all ${steps.length} steps went as they have to.${unjudged}` };
  }
  if (answer.type !== "failed") throw new SlipwayError("exec_failed", "the checker answered another question");
  const before = steps.slice(0, answer.step).map((step, index) => `${index + 1}. ${done(step)}`);
  const text = [
    ...[`${where}:`, ...before, `${answer.step + 1}. ${failed(steps[answer.step], answer)}`],
    ...(answer.errors.length === 0
      ? []
      : [`The page had errors:\n${cut(answer.errors.join("\n"), maxErrorsCharacters)}`]),
    ...(answer.page === "" ? [] : [`The page was then:\n${cut(answer.page, maxPageCharacters)}`]),
  ].join("\n");
  return { ok: false, text };
}

function done(step: Step): string {
  switch (step.action) {
    case "open":
      return `${step.path} was opened.`;
    case "reload":
      return "The page was loaded again.";
    case "press":
      return `The key ${step.key} was pressed.`;
    case "click":
      return `The ${named(step)} was clicked on.`;
    case "fill":
      return `Something was typed into the ${named(step)}.`;
    case "choose":
      return `Something was chosen in the ${named(step)}.`;
    case "see":
      return `A ${step.target.role} was seen that has to be there.`;
    case "see-nothing-of":
      return `A ${step.target.role} was gone that has to be gone.`;
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
      return `A ${step.target.role} that has to be there was not to be seen.`;
    case "see-nothing-of":
      return `A ${step.target.role} was to be seen that has to be gone.`;
    default:
      if (why === "missing") return `There was no ${named(step)} to be seen.`;
      return `The ${named(step)} could not be used (${step.action}): ${detail}`;
  }
}

function named({ target }: Extract<Step, { readonly action: "click" | "fill" | "choose" }>): string {
  return `${target.role} "${target.name}"`;
}

type Metric = CheckOf<"performance">["metric"];

const metrics: Readonly<Record<Metric, { readonly what: string; readonly unit: string }>> = {
  firstByteMs: { what: "The first byte came after", unit: " ms" },
  largestPaintMs: { what: "The largest part was painted after", unit: " ms" },
  interactionMs: { what: "An interaction was shown after", unit: " ms" },
  transferKilobytes: { what: "What was loaded had", unit: " kilobytes" },
  layoutShift: { what: "The layout shifted by", unit: "" },
};

export function performanceOutcome({ path, metric, atMost }: CheckOf<"performance">, answer: CheckerAnswer): Outcome {
  if (answer.type === "failed") {
    const how = answer.why === "stuck" ? "stopped answering" : "could not be loaded";
    return { ok: false, text: `${path} ${how} in a browser.` };
  }
  if (answer.type !== "measured") throw new SlipwayError("exec_failed", "the checker answered another question");
  const values = answer.values.filter((value) => value !== null).toSorted((a, b) => a - b);
  const median = values[Math.floor(values.length / 2)];
  if (median === undefined || values.length < answer.values.length) {
    return { ok: false, text: `${path} was opened in a browser, and there was nothing to measure: the page is empty.` };
  }
  const { what, unit } = metrics[metric];
  const often = values.length === 1 ? "once" : `${values.length} times`;
  const middle = values.length === 1 ? "" : " (median)";
  const seen = `${path} was opened ${often} in a browser. ${what} ${round(median)}${unit}${middle}`;
  return { ok: median <= atMost, text: `${seen}; at most ${atMost}${unit} is wanted.` };
}

function round(value: number): number {
  return Math.round(value * 100) / 100;
}
