import {
  type CheckOf,
  type ControlRole,
  controlWords,
  type PerformanceMetric,
  type Seen,
  SlipwayError,
  type Surface,
  type VisitStep,
  withValues,
} from "@slipway/contract";

/** What to find on a page. Any of the names will do. */
export interface Target {
  readonly role: ControlRole | "listitem" | "text";
  readonly names: readonly string[];
}

export type Step =
  /** A path with variables: the last address like it where a visitor has been. */
  | { readonly action: "open"; readonly path: string }
  | { readonly action: "click"; readonly target: Target }
  | { readonly action: "fill" | "choose"; readonly target: Target; readonly value: string }
  | { readonly action: "press"; readonly key: string }
  | { readonly action: "reload" }
  | { readonly action: "switch"; readonly visitor: number }
  | { readonly action: "see" | "see-nothing-of"; readonly target: Target };

/** What the program beside the browser is asked to do. */
export type BrowserJob = {
  /** How long a step waits for what is not there. Left out: as long as people wait for an app. */
  readonly patienceMs?: number | undefined;
} & (
  | { readonly type: "visit"; readonly viewport: "phone" | "desktop"; readonly steps: readonly Step[] }
  | {
      readonly type: "measure";
      readonly path: string;
      /** Without it the page is not there. */
      readonly sees: Target | null;
      readonly metric: PerformanceMetric;
    }
  /** Opens "/" and what links lead to, at most so many pages, and uses nothing on them. */
  | { readonly type: "look"; readonly most: number; readonly forMs: number }
);

/** A step with the words for it. They name what the surface names, and no value of the check. */
export interface ToldStep {
  readonly step: Step;
  readonly done: string;
  /** Its target is not there, or still is. */
  readonly unmet: string;
  /** A message of the surface that may be there with other values. */
  readonly like?: string;
}

export interface ToldVisit {
  readonly viewport: "phone" | "desktop";
  readonly appearance: string | null;
  readonly steps: readonly ToldStep[];
}

/** A check with names in place of ids. */
export function visitJob(surface: Surface, { viewport, appearance, steps }: CheckOf<"visit">): ToldVisit {
  return { viewport, appearance, steps: steps.map((step) => toldStep(surface, step)) };
}

export function measureJob(surface: Surface, check: CheckOf<"measure">) {
  const { path } = named(surface.pages, check.page);
  return { type: "measure", path, sees: seenIn(surface, check.sees).target, metric: check.metric } as const;
}

function toldStep(surface: Surface, step: VisitStep): ToldStep {
  const unmet = "";
  switch (step.action) {
    case "open": {
      const { path } = named(surface.pages, step.page);
      return { step: { action: "open", path }, done: `${path} was opened.`, unmet };
    }
    case "reload":
      return { step, done: "The page was reloaded.", unmet };
    case "press":
      return { step, done: `The key ${step.key} was pressed.`, unmet };
    case "switch":
      return { step, done: `What follows was done by visitor ${step.visitor}.`, unmet };
    case "see":
    case "see-nothing-of": {
      const { target, is, like } = seenIn(surface, step.what);
      const [seen, unseen] = [`${is} is on the page`, `${is} is not on the page`];
      const wanted = step.action === "see";
      return {
        step: { action: step.action, target },
        done: `${wanted ? seen : unseen}.`,
        unmet: wanted ? `${unseen}.` : `${seen}, and must not be any more.`,
        ...(like !== undefined && { like }),
      };
    }
    default: {
      const { target, is } = seenIn(surface, { control: step.control, with: step.with });
      const did = { click: "was clicked", fill: "was filled in", choose: "was chosen from" }[step.action];
      const value = step.action === "click" ? {} : { value: step.value };
      const act = { action: step.action, target, ...value } as Step;
      return { step: act, done: `${is} ${did}.`, unmet: `${is} is not on the page.` };
    }
  }
}

function seenIn(surface: Surface, seen: Seen): { target: Target; is: string; like?: string } {
  if ("value" in seen) {
    return { target: { role: "text", names: [seen.value] }, is: "What was entered before" };
  }
  const values = new Map(seen.with.map(({ variable, value }) => [variable, value]));
  if ("control" in seen) {
    const control = named(surface.controls, seen.control);
    const target = { role: control.role, names: [withValues(control.name, values)] };
    const page = control.page === null ? "every page" : named(surface.pages, control.page).path;
    return { target, is: `The ${controlWords(control)}, which the surface has on ${page},` };
  }
  const { text, one } = named(surface.messages, seen.message);
  const isOne = one !== null && [...values.values()].includes("1");
  const names = (isOne ? [one, text] : [text]).map((form) => withValues(form, values));
  return {
    target: { role: "text", names },
    is: `The surface's message ${JSON.stringify(text)}, as it has to read now,`,
    like: text,
  };
}

function named<T extends { readonly id: string }>(all: readonly T[], id: string): T {
  const found = all.find((one) => one.id === id);
  if (found === undefined) throw new SlipwayError("internal", `a check names ${id}, which the surface does not have`);
  return found;
}
