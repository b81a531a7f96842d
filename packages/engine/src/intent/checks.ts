import { type Check, type CriterionKind, type Intent, performanceMetrics } from "@slipway/contract";
import type { Finding } from "../ask/ask.ts";

/** What can prove a criterion of a kind. An HTTP answer proves nothing about how a page looks. */
const provenBy: Readonly<Record<CriterionKind, readonly Check["type"][]>> = {
  functional: ["http", "browser"],
  visual: ["browser"],
  performance: ["performance"],
};

/** Returns what is wrong with the checks of an intent: every criterion and every workflow needs one that can fail. */
export function checkChecks({ criteria, workflows }: Intent, checks: readonly Check[]): readonly Finding[] {
  const demands = new Map<string, readonly Check["type"][]>([
    ...criteria.map(({ id, kind }) => [id, provenBy[kind]] as const),
    ...workflows.map(({ id }) => [id, ["browser"]] as const),
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
  return [...unproven, ...invented, ...checks.flatMap(findingsOf)];
}

function findingsOf(check: Check): Finding[] {
  const message = weaknessOf(check);
  return message === undefined ? [] : [{ rule: "a check can fail", message: `of ${check.proves}: ${message}` }];
}

function weaknessOf(check: Check): string | undefined {
  switch (check.type) {
    case "http":
      return undefined;
    case "browser": {
      if (check.steps[0]?.action !== "open") return "the first step does not open a page";
      const looks = check.steps.some(({ action }) => action === "see" || action === "see-nothing-of");
      return looks || check.appearance !== null ? undefined : "nothing has to be seen";
    }
    case "performance": {
      const most = performanceMetrics[check.metric];
      return check.atMost <= most ? undefined : `${check.metric} of ${check.atMost} is too high; the limit is ${most}`;
    }
  }
}
