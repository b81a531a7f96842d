import type { Check, CheckOf, Criterion, Intent } from "@slipway/contract";

/** A check for every criterion and workflow. Each fails on an app that only pretends. */
export function checksFor({ criteria, workflows }: Intent): Check[] {
  return [
    ...criteria.map(criterionCheck),
    ...workflows.map(({ id, title, success }) => entryCheck(id, `After ${title}: ${success}`)),
  ];
}

function criterionCheck({ id, kind, statement }: Criterion): Check {
  switch (kind) {
    case "functional":
      return entryCheck(id, null);
    case "visual":
      return { ...entryCheck(id, statement), viewport: "phone" };
    case "performance":
      return {
        type: "measure",
        proves: id,
        page: "start",
        sees: { control: "add", with: [] },
        metric: "largestPaintMs",
        atMost: 2000,
      };
  }
}

/** Enters something that no app shows by itself, and looks for it after a reload. */
function entryCheck(proves: string, appearance: string | null): CheckOf<"visit"> {
  const value = `Proof of ${proves}`;
  return {
    type: "visit",
    proves,
    viewport: "desktop",
    steps: [
      { action: "open", page: "start" },
      { action: "fill", control: "name", with: [], value },
      { action: "click", control: "add", with: [] },
      { action: "reload" },
      { action: "see", what: { value } },
    ],
    appearance: appearance?.slice(0, 2000) ?? null,
  };
}
