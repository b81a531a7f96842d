import { compareIds, type Task, tailsOf } from "@slipway/contract";

export interface CriticalPath {
  /** Ids, first to last. */
  readonly tasks: readonly string[];
  readonly minutes: number;
}

/** The longest chain of tasks: no number of sandboxes makes the plan shorter. */
export function criticalPath(tasks: readonly Task[]): CriticalPath {
  const tails = tailsOf(tasks, ({ estimate }) => estimate.minutes);
  const longest = (candidates: readonly Task[]) =>
    candidates.toSorted((a, b) => (tails.get(b.id) ?? 0) - (tails.get(a.id) ?? 0) || compareIds(a.id, b.id))[0];
  const path: Task[] = [];
  let next = longest(tasks);
  while (next !== undefined) {
    path.push(next);
    const { id } = next;
    next = longest(tasks.filter(({ dependencies }) => dependencies.includes(id)));
  }
  return { tasks: path.map(({ id }) => id), minutes: path.reduce((sum, { estimate }) => sum + estimate.minutes, 0) };
}
