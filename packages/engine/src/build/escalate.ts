import type { Level, NextTry } from "../ports/work.ts";
import type { FailedTry, TaskState } from "./state.ts";

/** How often each level is tried before the next one. */
const triesAtLevel: Readonly<Record<Level, number>> = { 0: 3, 1: 3, 2: 3, 3: 2, 4: 1 };

/** The most tries before a task fails: the first one, and those of all levels. */
export const mostTries = 1 + Object.values(triesAtLevel).reduce((sum, tries) => sum + tries, 0);

/** What to try after the failure, which is not in the task's list yet. Null: nothing is left, and the task fails. */
export function escalate(task: TaskState, failed: FailedTry, pattern: string | null): NextTry | null {
  const failures = [...task.failures, failed];
  if (pattern !== null && mayTryPattern(failures, pattern)) return { level: 0, pattern, from: "last-attempt" };
  const reached = Math.max(1, ...failures.map(({ level }) => level ?? 0)) as Level;
  const level = isSpent(failures, reached) ? reached + 1 : reached;
  if (level > 4) return null;
  return { level: level as Level, pattern: null, from: level === 4 ? "main" : "last-attempt" };
}

/** A known fix is tried once per task, and only a few in all: patterns can be wrong about an error. */
function mayTryPattern(failures: readonly FailedTry[], pattern: string): boolean {
  const tried = failures.filter(({ level }) => level === 0);
  return tried.length < triesAtLevel[0] && !tried.some((entry) => entry.pattern === pattern);
}

/** All tries are used up, or they loop: an error of this level is back. */
function isSpent(failures: readonly FailedTry[], level: Level): boolean {
  const errors = failures.filter((entry) => entry.level === level).map(({ error }) => error);
  return errors.length >= triesAtLevel[level] || new Set(errors).size < errors.length;
}
