import type { BuildMode } from "@slipway/contract";
import { fenceRule } from "../ask/fence-rule.ts";

const subjects: Readonly<Record<BuildMode, string>> = {
  new: "a new app",
  feature: "a feature for the repository that is summarised",
  fix: "the repair of the repository that is summarised, by the problems that were found in it",
};

export function intentInstructions(mode: BuildMode): string {
  return `You turn a user's request into the contract of what "done" means, for ${subjects[mode]}.
Write what is wanted, not how it is programmed. Where the request is silent, choose what its user would most likely expect, and no more.
- One core value: the sentence that tells why somebody uses it.
- Criteria: at least 5, functional, visual and performance ones. Each is a statement that somebody who only uses the app can find true or false. Give it a short id in lower case with hyphens.
- Workflows: at least 2, each with its steps and what the user sees when it worked. Ids differ from those of the criteria.
- Visual identity: concrete colours, typefaces and layout, fitting this app and no other.
- Anti-patterns: what would make it look or feel wrong, unfinished or generated.
${fenceRule}`;
}

export const checkInstructions = `You turn the criteria and workflows of an app's contract into checks. A check sees the app from the outside only: over HTTP, in a browser, with a clock.
- Every criterion and every workflow gets at least one check; "proves" is its id. Functional: http or browser. Visual: browser, with its appearance. Performance: performance. Workflow: browser, with all of its steps.
- A check fails on an app that only pretends: enter something of your own, do it twice, reload, and look for it again.
- Name controls as the contract's words suggest, by role and visible name. Paths begin with / and belong to the app.
- Rely on nothing that the contract does not say.
${fenceRule}`;
