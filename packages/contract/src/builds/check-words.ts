import type { Call, KeptCheck, Seen, VisitStep } from "./checks.ts";
import type { PerformanceMetric } from "./performance.ts";
import { controlWords, type Surface, withValues } from "./surface.ts";

/** A check step by step, one line each, with its values, for the user. Agents never read it. */
export function checkLines(surface: Surface, check: KeptCheck): string[] {
  switch (check.type) {
    case "visit":
      return check.steps.map((step) => stepLine(surface, step));
    case "calls":
      return check.calls.map((call) => callLine(surface, call));
    case "measure": {
      const page = `open ${pathOf(surface, check.page)} and see ${seenWords(surface, check.sees)}`;
      return [`${page}: ${limitWords[check.metric](check.atMost)}`];
    }
    default:
      return [JSON.stringify(check)];
  }
}

const limitWords: Readonly<Record<PerformanceMetric, (atMost: number) => string>> = {
  firstByteMs: (ms) => `the first byte comes within ${ms} ms`,
  largestPaintMs: (ms) => `the largest part is painted within ${ms} ms`,
  interactionMs: (ms) => `an interaction takes effect within ${ms} ms`,
  transferKilobytes: (kilobytes) => `at most ${kilobytes} kilobytes are transferred`,
  layoutShift: (shift) => `the layout shifts by at most ${shift}`,
};

function stepLine(surface: Surface, step: VisitStep): string {
  switch (step.action) {
    case "open":
      return `open ${pathOf(surface, step.page)}`;
    case "press":
      return `press the key ${step.key}`;
    case "reload":
      return "reload the page";
    case "switch":
      return `continue as visitor ${step.visitor}`;
    case "see":
      return `see ${seenWords(surface, step.what)}`;
    case "see-nothing-of":
      return "value" in step.what
        ? `see ${quoted(step.what.value)} nowhere`
        : `see no ${namedWords(surface, step.what)}`;
    case "click":
      return `click the ${namedWords(surface, step)}`;
    case "fill": {
      const control = `the ${namedWords(surface, step)}`;
      return step.value === "" ? `empty ${control}` : `fill ${control} with ${quoted(step.value)}`;
    }
    case "choose":
      return `choose ${quoted(step.value)} in the ${namedWords(surface, step)}`;
  }
}

function seenWords(surface: Surface, seen: Seen): string {
  return "value" in seen ? quoted(seen.value) : `the ${namedWords(surface, seen)}`;
}

function namedWords({ controls, messages }: Surface, seen: Exclude<Seen, { readonly value: string }>): string {
  const values = new Map(seen.with.map(({ variable, value }) => [variable, value]));
  if ("control" in seen) {
    const control = named(controls, seen.control);
    return control ? controlWords({ ...control, name: withValues(control.name, values) }) : `control ${seen.control}`;
  }
  const message = named(messages, seen.message);
  if (message === undefined) return `message ${seen.message}`;
  const { text, one } = message;
  const isOne = one !== null && [...values.values()].includes("1");
  const forms = (isOne ? [one, text] : [text]).map((form) => quoted(withValues(form, values)));
  return `message ${forms.join(" or ")}`;
}

function callLine({ routes }: Surface, { route, with: given, send, expect, keep }: Call): string {
  const called = named(routes, route);
  const values = new Map(given.map((one) => [one.variable, "kept" in one ? `{${one.kept}}` : one.value]));
  const path = called ? `${called.method} ${withValues(called.path, values)}` : `route ${route}`;
  const sent = send.length === 0 ? "" : ` with ${fieldWords(send)}`;
  const answer = [
    expect.has.length > 0 && `has ${fieldWords(expect.has)}`,
    expect.lacks.length > 0 && `lacks ${fieldWords(expect.lacks)}`,
  ].filter((part) => part !== false);
  const parts = [
    `${path}${sent} is ${expect.answer}`,
    ...(answer.length === 0 ? [] : [`the answer ${answer.join(" and ")}`]),
    ...keep.map(({ field, as }) => `its ${field} is kept as {${as}}`),
  ];
  return parts.join("; ");
}

function fieldWords(fields: Call["send"]): string {
  return fields.map(({ field, value }) => `${field} ${JSON.stringify(value)}`).join(", ");
}

function pathOf({ pages }: Surface, page: string): string {
  return named(pages, page)?.path ?? `page ${page}`;
}

function quoted(text: string): string {
  return JSON.stringify(text);
}

function named<T extends { readonly id: string }>(all: readonly T[], id: string): T | undefined {
  return all.find((one) => one.id === id);
}
