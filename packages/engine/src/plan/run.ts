import { fence, type LockedIntent, type Partition, type Plan, planDraftSchema, type Task } from "@slipway/contract";
import { askUntilSound } from "../ask/ask.ts";
import { describeStart } from "../ask/start.ts";
import type { ModelRoles } from "../ports/models.ts";
import type { StartingPoint } from "../ports/repository.ts";
import { checkGpus, checkPlan, completePlan, type PlanDemands, refuseGpus } from "./decide.ts";
import { planInstructions, remainingInstructions } from "./prompts.ts";

export interface PlanQuestion {
  readonly locked: LockedIntent;
  readonly start: StartingPoint;
  /** What tasks are cut by; by feature when left out. */
  readonly partition?: Partition | undefined;
  /** What a task may ask for. Left out: the provider has no GPUs, and a plan that needs one is refused. */
  readonly gpus?: readonly string[] | undefined;
  readonly signal?: AbortSignal | undefined;
}

/** A plan for all of the intent. */
export async function makePlan(models: ModelRoles, question: PlanQuestion): Promise<Plan> {
  const criteria = question.locked.intent.criteria.map(({ id }) => id);
  return askForPlan(models, question, { criteria, unserved: criteria, taken: [], merged: [] }, []);
}

/** What is left to do after a satisfaction check. */
export interface Remaining {
  /** Criteria and workflows, by their ids. */
  readonly unsatisfied: readonly { readonly id: string; readonly evidence: string }[];
  readonly tasks: readonly (Pick<Task, "id" | "title"> & { readonly merged: boolean })[];
}

const maxEvidenceCharacters = 2000;

/** A plan for the criteria and workflows that are not satisfied, on top of what is merged. */
export async function planRemaining(
  models: ModelRoles,
  question: PlanQuestion,
  { unsatisfied, tasks }: Remaining,
): Promise<Plan> {
  const criteria = question.locked.intent.criteria.map(({ id }) => id);
  const left = new Set(unsatisfied.map(({ id }) => id));
  const demands: PlanDemands = {
    criteria,
    // Tasks serve criteria only; the prompt names unsatisfied workflows.
    unserved: criteria.filter((id) => left.has(id)),
    taken: tasks.map(({ id }) => id),
    merged: tasks.filter(({ merged }) => merged).map(({ id }) => id),
  };
  const told = tasks.map(({ id, title, merged }) => `${id} (${merged ? "merged" : "failed"}): ${title}`);
  const missing = unsatisfied.map(({ id, evidence }) => `${id}: ${evidence.slice(-maxEvidenceCharacters)}`);
  return askForPlan(models, question, demands, [
    remainingInstructions,
    fence("tasks", told.join("\n")),
    fence("unsatisfied", missing.join("\n")),
  ]);
}

const maxOutputTokens = 64_000;

async function askForPlan(
  models: ModelRoles,
  { locked, start, partition = "feature", gpus = [], signal }: PlanQuestion,
  demands: PlanDemands,
  more: readonly string[],
): Promise<Plan> {
  const contract = fence("contract", JSON.stringify(locked.intent, null, 1));
  const draft = await askUntilSound(models, {
    role: "plan",
    instructions: planInstructions(start.mode, partition, gpus),
    prompt: [contract, ...(await describeStart(start)), ...more].join("\n\n"),
    schema: planDraftSchema,
    check: (answer) => [...checkPlan(answer, demands), ...checkGpus(answer, gpus)],
    maxOutputTokens,
    signal,
  });
  refuseGpus(draft, gpus);
  return completePlan(draft, { mode: start.mode, intentHash: locked.hash });
}
