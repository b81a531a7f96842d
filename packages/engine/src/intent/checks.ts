import {
  type Check,
  type CheckOf,
  type CriterionKind,
  type Intent,
  performanceMetrics,
  type Seen,
  SlipwayError,
  type Surface,
  variablesOf,
} from "@slipway/contract";
import type { Finding } from "../ask/ask.ts";

/** What can prove a criterion of a kind. An HTTP answer proves nothing about how a page looks. */
const provenBy: Readonly<Record<CriterionKind, readonly Check["type"][]>> = {
  functional: ["calls", "visit"],
  visual: ["visit"],
  performance: ["measure"],
};

/**
 * Returns what is wrong with the checks of an intent. Every criterion and every workflow needs one that can fail, that
 * names only what the surface names, and that looks only for what a sound app has to show.
 */
export function checkChecks(intent: Intent, checks: readonly Check[]): readonly Finding[] {
  const { criteria, workflows } = intent;
  const surface = surfaceOf(intent);
  const demands = new Map<string, readonly Check["type"][]>([
    ...criteria.map(({ id, kind }) => [id, provenBy[kind]] as const),
    ...workflows.map(({ id }) => [id, ["visit"] as const] as const),
  ]);
  const unproven = [...demands]
    .filter(([id, types]) => !checks.some(({ proves, type }) => proves === id && types.includes(type)))
    .map(([id, types]) => ({
      rule: "all is proven",
      message: `${id} needs a check of the type ${types.join(" or ")}`,
    }));
  const invented = checks
    .filter(({ proves }) => !demands.has(proves))
    .map(({ proves }) => ({ rule: "nothing is invented", message: `the intent has no ${proves}` }));
  const held = checks.flatMap((check) => checkProblems(surface, check));
  return [...unproven, ...invented, ...held, ...unvaried(surface, checks)];
}

/** What is wrong with a check by itself. */
function checkProblems(surface: Surface, check: Check): readonly Finding[] {
  const found = { visit: visitProblems, calls: callProblems, measure: measureProblems }[check.type] as (
    surface: Surface,
    check: Check,
  ) => Problems;
  return found(surface, check).map(([rule, message]) => ({
    rule,
    message: `the check of ${check.proves}: ${message}`,
  }));
}

/** Fails for an intent that was drafted before intents had surfaces. */
export function surfaceOf({ surface }: Pick<Intent, "surface">): Surface {
  if (surface !== undefined) return surface;
  throw new SlipwayError("invalid_request", "the intent has no surface: add one by an edit, or begin the build again");
}

type Problems = (readonly [rule: string, message: string])[];

const named = "checks name only the surface";
const canFail = "a check can fail";
const known = "a check looks for what it knows";

/** What a visitor has entered so far; what is looked for has to be part of it. */
function createEntered() {
  const values: string[] = [];
  return {
    add: (value: unknown) => void values.push(plain(String(value))),
    has: (value: string) => values.some((one) => one.includes(plain(value))),
  };
}

function plain(value: string): string {
  return value.toLowerCase().replace(/\s+/g, " ").trim();
}

type With = readonly { readonly variable: string }[];

/** Every variable of the name has one value. */
function withProblems(name: string, given: With): Problems {
  const wanted = variablesOf(name);
  const got = given.map(({ variable }) => variable);
  return wanted.length === got.length && wanted.every((one) => got.includes(one))
    ? []
    : [[named, `${JSON.stringify(name)} needs a value for each of its variables, and has ${got.join(", ") || "none"}`]];
}

/** As a browser names them. */
const knownKey =
  /^((Control|Shift|Alt|Meta)\+)*(Enter|Return|Escape|Esc|Tab|Space|Backspace|Delete|Insert|Home|End|Page(Up|Down)|Arrow(Up|Down|Left|Right)|F([1-9]|1[0-2])|[!-~])$/;

function visitProblems(surface: Surface, { steps, appearance }: CheckOf<"visit">): Problems {
  const problems: Problems = [];
  const entered = createEntered();
  const visitors = new Set([1]);
  let isLost = true;
  for (const step of steps) {
    if (isLost && step.action !== "open" && step.action !== "switch")
      problems.push([named, "a visitor begins by opening a page"]);
    isLost = false;
    switch (step.action) {
      case "open":
        if (!surface.pages.some(({ id }) => id === step.page))
          problems.push([named, `the surface has no page ${step.page}`]);
        break;
      case "switch":
        isLost = !visitors.has(step.visitor);
        visitors.add(step.visitor);
        break;
      case "press":
        if (!knownKey.test(step.key)) problems.push([named, `there is no key ${step.key}`]);
        break;
      case "see":
      case "see-nothing-of":
        problems.push(...seenProblems(surface, step.what, entered));
        break;
      case "click":
      case "fill":
      case "choose":
        problems.push(...seenProblems(surface, { control: step.control, with: step.with }, entered));
        if (step.action !== "click") entered.add(step.value);
    }
  }
  // On an empty page nothing can be used or seen. See docs/checks.md.
  const needsPage = steps.some(({ action }) => ["click", "fill", "choose", "see"].includes(action));
  if (!needsPage) problems.push([canFail, "it passes on an empty page: nothing has to be used or seen"]);
  const looks = steps.some(({ action }) => action === "see" || action === "see-nothing-of");
  if (!looks && appearance === null) problems.push([canFail, "nothing has to be seen"]);
  return problems;
}

function seenProblems(
  { controls, messages }: Surface,
  seen: Seen,
  entered: Pick<ReturnType<typeof createEntered>, "has">,
): Problems {
  if ("value" in seen) {
    return entered.has(seen.value)
      ? []
      : [[known, `${JSON.stringify(seen.value)} was not entered before it is looked for`]];
  }
  const isControl = "control" in seen;
  const id = isControl ? seen.control : seen.message;
  const name = isControl ? controls.find((one) => one.id === id)?.name : messages.find((one) => one.id === id)?.text;
  if (name === undefined) return [[named, `the surface has no ${isControl ? "control" : "message"} ${id}`]];
  const strange = seen.with.filter(({ value }) => !entered.has(value) && (isControl || !/^\d+$/.test(value)));
  return [
    ...withProblems(name, seen.with),
    ...strange.map(
      ({ variable, value }) =>
        [known, `{${variable}} of ${id} is ${JSON.stringify(value)}, which was not entered before`] as const,
    ),
  ];
}

function callProblems({ routes }: Surface, { calls }: CheckOf<"calls">): Problems {
  const problems: Problems = [];
  const sent = createEntered();
  const kept = new Set<string>();
  for (const call of calls) {
    const route = routes.find(({ id }) => id === call.route);
    if (route === undefined) {
      problems.push([named, `the surface has no route ${call.route}`]);
      continue;
    }
    const { has, lacks, answer } = call.expect;
    problems.push(...withProblems(route.path, call.with));
    for (const given of call.with) {
      if ("kept" in given) {
        if (!kept.has(given.kept)) problems.push([known, `nothing was kept as ${given.kept} before ${call.route}`]);
      } else if (answer === "accepted" && route.method !== "PUT" && !sent.has(given.value)) {
        problems.push([
          known,
          `only the app knows what {${given.variable}} of ${call.route} is: keep it from an answer before`,
        ]);
      }
    }
    problems.push(...fieldProblems(call.route, "request", route.request, call.send));
    for (const { value } of call.send) sent.add(value);
    for (const given of call.with) if ("value" in given) sent.add(given.value);
    problems.push(...fieldProblems(call.route, "response", route.response, [...has, ...lacks]));
    const unknown = has.filter(({ value }) => typeof value === "string" && !sent.has(value));
    problems.push(
      ...unknown.map(
        ({ field, value }) => [known, `${field} is ${JSON.stringify(value)}, which was not sent before`] as const,
      ),
    );
    for (const { field, as } of call.keep) {
      if (!route.response.some((one) => one.field === field))
        problems.push([named, `${call.route} answers with no ${field}`]);
      kept.add(as);
    }
    if (answer === "refused" && (has.length > 0 || call.keep.length > 0))
      problems.push([named, `${call.route} is refused: nothing is known of such an answer`]);
  }
  // An app that answers all with 200 and the same text accepts all and has no field.
  const needsApp = calls.some(
    ({ keep, expect }) => expect.answer === "refused" || expect.has.length > 0 || keep.length > 0,
  );
  if (!calls.some(({ expect }) => expect.answer === "accepted"))
    problems.push([canFail, "it passes on an app that refuses everything"]);
  if (!needsApp) problems.push([canFail, "it passes on an app that answers everything with 200 and the same text"]);
  return problems;
}

type Fields = readonly { readonly field: string; readonly type: "text" | "number" | "boolean" }[];
type Given = readonly { readonly field: string; readonly value: string | number | boolean }[];

function fieldProblems(route: string, part: string, fields: Fields, given: Given): Problems {
  return given.flatMap(({ field, value }): Problems => {
    const type = fields.find((one) => one.field === field)?.type;
    if (type === undefined) return [[named, `the ${part} of ${route} has no ${field}`]];
    return type === (typeof value === "string" ? "text" : typeof value)
      ? []
      : [[named, `${field} of ${route} is a ${type}`]];
  });
}

function measureProblems(surface: Surface, { page, sees, metric, atMost }: CheckOf<"measure">): Problems {
  const path = surface.pages.find(({ id }) => id === page)?.path;
  const problems = seenProblems(surface, sees, createEntered());
  if (path === undefined) problems.push([named, `the surface has no page ${page}`]);
  else if (variablesOf(path).length > 0) problems.push([named, `only the app knows an address of ${path}`]);
  const most = performanceMetrics[metric];
  if (atMost > most) problems.push([canFail, `${metric} of ${atMost} is too high; the limit is ${most}`]);
  return problems;
}

/** A message that is only ever seen with one value could be written into the page as it is. */
function unvaried({ messages }: Surface, checks: readonly Check[]): Finding[] {
  const seen = new Map<string, Set<string>>();
  for (const check of checks) {
    const whats = check.type === "visit" ? check.steps.flatMap((step) => ("what" in step ? [step.what] : [])) : [];
    for (const what of whats) {
      if (!("message" in what)) continue;
      for (const { variable, value } of what.with) {
        const key = `${what.message} ${variable}`;
        seen.set(key, (seen.get(key) ?? new Set()).add(value));
      }
    }
  }
  return messages.flatMap(({ id, text }) =>
    variablesOf(text)
      .filter((variable) => seen.get(`${id} ${variable}`)?.size === 1)
      .map((variable) => ({
        rule: "variables vary",
        message: `{${variable}} of the message ${id} is only ever seen with one value: look for it with another one, too`,
      })),
  );
}
