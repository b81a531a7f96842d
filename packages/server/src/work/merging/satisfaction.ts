import { type NewEvent, report, type WorkItem, type WorkingBuild } from "@slipway/engine";
import type { BuildRepository } from "../repository/repository.ts";

/** What is seen of each criterion and workflow on a commit. */
export interface Satisfaction {
  satisfaction(
    build: WorkingBuild,
    commit: string,
    signal: AbortSignal,
  ): Promise<readonly { readonly id: string; readonly satisfied: boolean; readonly text: string }[]>;
}

interface SatisfactionParts {
  readonly gates: Satisfaction;
  readonly repository: Pick<BuildRepository, "main">;
}

/** All checks on main. */
export async function checkSatisfaction(
  { gates, repository }: SatisfactionParts,
  build: WorkingBuild,
  { round }: Extract<WorkItem, { type: "check-satisfaction" }>,
  signal: AbortSignal,
): Promise<NewEvent> {
  const evidence = await gates.satisfaction(build, await repository.main(), signal);
  const unsatisfied = evidence.filter(({ satisfied }) => !satisfied).map(({ id }) => id);
  const told = { round, unsatisfied, evidence: [...evidence] };
  return report("satisfaction.checked", `satisfaction.checked:${round}`, told);
}
