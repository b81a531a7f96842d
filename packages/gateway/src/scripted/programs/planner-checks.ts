import type { Check, Criterion, Intent } from "@slipway/contract";

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
      return {
        type: "browser",
        proves: id,
        viewport: "phone",
        steps: [{ action: "open", path: "/" }, { action: "reload" }],
        appearance: statement,
      };
    case "performance":
      return { type: "performance", proves: id, path: "/", metric: "largestPaintMs", atMost: 2000 };
  }
}

/** Enters something that no app shows by itself, and looks for it after a reload. */
function entryCheck(proves: string, appearance: string | null): Check {
  const value = `Proof of ${proves}`;
  return {
    type: "browser",
    proves,
    viewport: "desktop",
    steps: [
      { action: "open", path: "/" },
      { action: "fill", target: { role: "textbox", name: "Name" }, value },
      { action: "click", target: { role: "button", name: "Add" } },
      { action: "reload" },
      { action: "see", target: { role: "text", name: value } },
    ],
    appearance: appearance?.slice(0, 2000) ?? null,
  };
}
