/** A task as a point of its plan's graph. */
export interface TaskNode {
  readonly id: string;
  readonly dependencies: readonly string[];
}

/** Each after those that it depends on, equals by their id. Unknown dependencies do not count. Undefined: there is a cycle. */
export function topologicalOrder<T extends TaskNode>(tasks: readonly T[]): readonly T[] | undefined {
  const depths = depthsOf(tasks);
  if (depths.size < tasks.length) return undefined;
  const depthOf = ({ id }: T) => depths.get(id) ?? 0;
  return tasks.toSorted((a, b) => depthOf(a) - depthOf(b) || compareIds(a.id, b.id));
}

/** The length of the longest chain of tasks before each. Tasks of a cycle, and those after one, are missing. */
export function depthsOf(tasks: readonly TaskNode[]): ReadonlyMap<string, number> {
  const dependents = dependentsOf(tasks);
  const waitsFor = new Map(tasks.map(({ id, dependencies }) => [id, countKnown(dependencies, dependents)]));
  const depths = new Map<string, number>();
  let ready = tasks.filter(({ id }) => waitsFor.get(id) === 0).map(({ id }) => id);
  for (let depth = 0; ready.length > 0; depth++) {
    const next: string[] = [];
    for (const id of ready) {
      depths.set(id, depth);
      for (const dependent of dependents.get(id) ?? []) {
        const left = (waitsFor.get(dependent) ?? 0) - 1;
        waitsFor.set(dependent, left);
        if (left === 0) next.push(dependent);
      }
    }
    ready = next;
  }
  return depths;
}

/** How long each task and what waits for it takes at least, along the longest path. The graph has no cycle. */
export function tailsOf<T extends TaskNode>(
  tasks: readonly T[],
  lengthOf: (task: T) => number,
): ReadonlyMap<string, number> {
  const tails = new Map<string, number>();
  for (const task of (topologicalOrder(tasks) ?? []).toReversed()) {
    const tail = lengthOf(task) + (tails.get(task.id) ?? 0);
    tails.set(task.id, tail);
    for (const id of task.dependencies) tails.set(id, Math.max(tails.get(id) ?? 0, tail));
  }
  return tails;
}

/** The tasks of a cycle, each a dependency of the one before, with the first again at the end. */
export function findCycle(tasks: readonly TaskNode[]): readonly string[] | undefined {
  const sound = depthsOf(tasks);
  const rest = new Map(tasks.filter(({ id }) => !sound.has(id)).map((task) => [task.id, task]));
  const path: string[] = [];
  // Every task that is left waits for another one that is left: following them must come back.
  let next = [...rest.keys()].sort(compareIds)[0];
  while (next !== undefined && !path.includes(next)) {
    path.push(next);
    next = rest
      .get(next)
      ?.dependencies.filter((id) => rest.has(id))
      .sort(compareIds)[0];
  }
  return next === undefined ? undefined : [...path.slice(path.indexOf(next)), next];
}

/** Which tasks wait for each one directly. */
export function dependentsOf(tasks: readonly TaskNode[]): ReadonlyMap<string, readonly string[]> {
  const dependents = new Map<string, string[]>(tasks.map(({ id }) => [id, []]));
  for (const { id, dependencies } of tasks) {
    for (const dependency of new Set(dependencies)) dependents.get(dependency)?.push(id);
  }
  return dependents;
}

/** By code units, the same on every machine. */
export function compareIds(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}

function countKnown(dependencies: readonly string[], known: ReadonlyMap<string, unknown>): number {
  return [...new Set(dependencies)].filter((id) => known.has(id)).length;
}
