import type { Call, CheckOf, KeptCheck, Seen, VisitStep } from "./checks.ts";
import { controlWords, type Surface, withValues } from "./surface.ts";

/** A check step by step, with its values, for the user. Agents never read it. */
export function checkLines(surface: Surface, check: KeptCheck): string[] {
  switch (check.type) {
    case "visit":
      return check.steps.map((step) => stepLine(surface, step));
    case "calls":
      return check.calls.map((call) => callLine(surface, call));
    case "measure":
      return [`${named(surface.pages, check.page)?.path} has a ${check.metric} of at most ${check.atMost}`];
    default:
      return [JSON.stringify(check)];
  }
}

function stepLine(surface: Surface, step: VisitStep): string {
  switch (step.action) {
    case "open":
      return `open ${named(surface.pages, step.page)?.path}`;
    case "press":
      return `press ${step.key}`;
    case "reload":
      return "reload the page";
    case "switch":
      return `continue as visitor ${step.visitor}`;
    case "see":
      return `see ${seenWords(surface, step.what)}`;
    case "see-nothing-of":
      return `see no ${seenWords(surface, step.what)}`;
    case "click":
      return `click the ${seenWords(surface, step)}`;
    case "fill":
    case "choose":
      return `${step.action} the ${seenWords(surface, step)} with ${JSON.stringify(step.value)}`;
  }
}

function seenWords({ controls, messages }: Surface, seen: Seen): string {
  if ("value" in seen) return JSON.stringify(seen.value);
  const values = new Map(seen.with.map(({ variable, value }) => [variable, value]));
  if ("message" in seen) {
    const text = named(messages, seen.message)?.text ?? seen.message;
    return `message ${JSON.stringify(withValues(text, values))}`;
  }
  const control = named(controls, seen.control);
  return control ? controlWords({ role: control.role, name: withValues(control.name, values) }) : seen.control;
}

function callLine({ routes }: Surface, { route, with: given, send, expect }: Call): string {
  const called = named(routes, route);
  const values = new Map(given.map((one) => [one.variable, "kept" in one ? `{${one.kept}}` : one.value]));
  const fields = (all: CheckOf<"calls">["calls"][number]["send"]) =>
    all.map(({ field, value }) => `${field} ${JSON.stringify(value)}`).join(", ");
  const parts = [
    send.length > 0 && `with ${fields(send)}`,
    `is ${expect.answer}`,
    expect.has.length > 0 && `and has ${fields(expect.has)}`,
    expect.lacks.length > 0 && `without ${fields(expect.lacks)}`,
  ];
  const path = called ? `${called.method} ${withValues(called.path, values)}` : route;
  return [path, ...parts.filter((part) => part !== false)].join(" ");
}

function named<T extends { readonly id: string }>(all: readonly T[], id: string): T | undefined {
  return all.find((one) => one.id === id);
}
