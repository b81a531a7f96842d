import { type BuildMode, type Partition, planLimits, usualComponents } from "@slipway/contract";
import { fenceRule } from "../ask/fence-rule.ts";

const subjects: Readonly<Record<BuildMode, string>> = {
  new: "The app is new: the first task sets up the project so that it builds, runs and can be tested.",
  feature:
    "The app exists: change as few of its files as the feature needs, follow its ways, and set nothing up that it has.",
  fix: "The app exists and is broken: each task removes the cause of one or more of the problems, and shows it by a test.",
};

const cuts: Readonly<Record<Partition, string>> = {
  phase:
    "in steps that build on each other, what the rest stands on first. Tasks of one phase need nothing of each other, and all that they need is in the phases before.",
  feature:
    "a task makes one feature, or a part of one, work through all of the app, from what is kept to what is seen, and names that feature first. What several features need is a task of its own, before them.",
  component:
    "a task stays in one component, and makes there what the features need of it. What components must agree on is a task of its own, before those that rely on it.",
};

function aboutGpus(gpus: readonly string[]): string {
  if (gpus.length === 0) return "";
  return `
- GPU: leave it out, unless the task cannot be done without one. There are ${gpus.join(", ")}. What judges the work, and main, have no GPU: such a task makes what can be built and tested without it, and its description says so.`;
}

export function planInstructions(mode: BuildMode, partition: Partition, gpus: readonly string[] = []): string {
  return `You split the contract of an app into tasks for coding agents that work at the same time, each in a place of its own. Their results are merged one by one.
${subjects[mode]}
- A task is a piece that one agent can finish and show to work, in ${planLimits.minTaskMinutes} to ${planLimits.maxTaskMinutes} minutes. Ids are short, in lower case with hyphens.
- Cut the app by ${partition}: ${cuts[partition]}
- The contract's surface is what tasks agree on: a description says which of its pages, controls, messages and routes the task makes, by their names.
- Dependencies: only what must be merged before the task can begin. Fewer let more agents work at once. No cycles.
- Tasks that can run at the same time change different files; say which files you expect each to change or add.
- Component: ${usualComponents.join(", ")}, or one of the app's own. Features: what it belongs to, the most important first.
- Criteria: the ids of those that the task serves. Every criterion of the contract is served by some task; invent none.
- Estimate the minutes of work and the cost of the model in USD, honestly.${aboutGpus(gpus)}
${fenceRule}`;
}

export const remainingInstructions = `The build has merged some tasks already, and not every criterion and workflow is satisfied. Plan only what is missing: new tasks with new ids, which may depend on merged ones.`;
