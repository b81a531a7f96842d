import { compareIds, depthsOf, type Partition, type Task } from "@slipway/contract";

export interface Part {
  readonly name: string;
  /** Ids, in the order of the plan. */
  readonly tasks: readonly string[];
}

/**
 * Groups of tasks; each task is in one of them. A task of several features belongs to the first that it names; a
 * phase is what can be done once the phases before it are done.
 */
export function partition(tasks: readonly Task[], by: Partition): readonly Part[] {
  const depths = depthsOf(tasks);
  const parts = new Map<string, string[]>();
  for (const task of tasks) {
    const name = partOf(task, by, depths);
    parts.set(name, [...(parts.get(name) ?? []), task.id]);
  }
  return [...parts].sort(([a], [b]) => compareIds(a, b)).map(([name, ids]) => ({ name, tasks: ids }));
}

function partOf(task: Task, by: Partition, depths: ReadonlyMap<string, number>): string {
  switch (by) {
    case "phase":
      return `phase-${String((depths.get(task.id) ?? 0) + 1).padStart(3, "0")}`;
    case "feature":
      return task.features[0] ?? task.component;
    case "component":
      return task.component;
  }
}
