import type { Check, Surface } from "@slipway/contract";
import type { Finding } from "../ask/ask.ts";
import type { Dummies, Dummy } from "../ports/dummies.ts";
import type { ModelRoles } from "../ports/models.ts";

/** What compiles checks, and what they must fail on. */
export interface CheckPorts {
  readonly models: ModelRoles;
  readonly dummies: Dummies;
}

const words: Readonly<Record<Dummy, string>> = {
  empty: "an empty page",
  constant: "an app that answers everything with 200 and the same text",
};

/** Which checks pass on an app that does nothing. They must hold to the rules: see checkChecks. */
export async function checkOnDummies(
  dummies: Dummies,
  { surface, checks }: { readonly surface: Surface; readonly checks: readonly Check[] },
  call: { readonly signal?: AbortSignal | undefined } = {},
): Promise<readonly Finding[]> {
  const passed = await dummies.passing(surface, checks, call);
  return passed.map(({ check, dummy }) => ({
    rule: "a check can fail",
    message: `the check of ${checks[check]?.proves} passes on ${words[dummy]}`,
  }));
}
