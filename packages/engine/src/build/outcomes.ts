import type { BuildAction } from "./actions.ts";
import { escalate } from "./escalate.ts";
import { evidence, fingerprint } from "./fingerprint.ts";
import { isRefused } from "./money.ts";
import {
  type AttemptState,
  type BuildState,
  type FailedTry,
  type Interruption,
  isDoneBy,
  type Outcome,
  type TaskState,
} from "./state.ts";
import { outcomeOf } from "./watch.ts";

const maxRespawns = 5;
const maxInterruptions = 10;
const tooOften = "interrupted too often";
const maxWaitMs = 10 * 60_000;

/** What is on main counts, even where the build ends in the same moment. */
export function settleMerged(state: BuildState, nowMs: number): BuildAction[] {
  return settleOutcomes(state, nowMs, isDoneBy);
}

/** What follows from what came of the attempts. */
export function settleOutcomes(
  state: BuildState,
  nowMs: number,
  isDue: (outcome: Outcome) => boolean = () => true,
): BuildAction[] {
  const tasks = new Map(state.tasks.map((task) => [task.id, task]));
  return state.attempts.flatMap((attempt) => {
    const task = tasks.get(attempt.task);
    const outcome = task && outcomeOf(attempt, task, nowMs);
    return task && outcome && isDue(outcome) ? settle(state, attempt, task, outcome, nowMs) : [];
  });
}

function settle(
  state: BuildState,
  attempt: AttemptState,
  task: TaskState,
  outcome: Outcome,
  nowMs: number,
): BuildAction[] {
  const name = { task: attempt.task, attempt: attempt.number };
  switch (outcome.type) {
    case "merged":
      return [
        { type: "end-attempt", ...name, keepSandbox: false },
        { type: "merge-task", task: task.id },
      ];
    case "satisfied":
      return [
        { type: "end-attempt", ...name, keepSandbox: false },
        { type: "satisfy-task", task: task.id, main: outcome.main },
      ];
    case "failed":
      return failed(attempt, task, outcome, outcome.pattern, nowMs);
    case "died":
      if (!state.settings.respawn || attempt.respawns >= maxRespawns) {
        return failed(attempt, task, { error: "the sandbox died" }, null, nowMs);
      }
      // It comes back when the build goes on and has a slot for it: see schedule.ts.
      if (attempt.pausedAtMs !== null) return [];
      return [{ type: "respawn-attempt", ...name, respawn: attempt.respawns + 1 }];
    case "interrupted":
      return interrupted(attempt, task, outcome, nowMs);
    case "out-of-budget":
      // The build is paused for it: see money.ts. Unless there is more money by now.
      if (attempt.pausedAtMs !== null || isRefused(outcome, state.settings)) return [];
      return [{ type: "resume-attempt", ...name }];
  }
}

function failed(
  attempt: AttemptState,
  task: TaskState,
  { error, message }: Pick<FailedTry, "error" | "message">,
  pattern: string | null,
  nowMs: number,
): BuildAction[] {
  const failure = { level: attempt.level, pattern: attempt.pattern, error, message };
  const next = escalate(task, failure, pattern);
  const end = { type: "end-attempt", task: task.id, attempt: attempt.number } as const;
  if (next === null) {
    const exhausted = { reason: "exhausted", error, message } as const;
    return [
      { ...end, keepSandbox: false },
      { type: "fail-task", task: task.id, failure: exhausted },
    ];
  }
  return [
    { ...end, keepSandbox: next.from === "last-attempt" },
    { type: "retry-task", task: task.id, failed: failure, next, notBeforeMs: nowMs },
  ];
}

/**
 * It is no failure of the attempt, and does not count as a try. A model's limit may last a night; of other troubles, not even
 * the weather is bad for ever.
 */
function interrupted(
  attempt: AttemptState,
  task: TaskState,
  { by, reason }: Interruption,
  nowMs: number,
): BuildAction[] {
  const before = by === "model" ? task.modelInterruptions : task.interruptions;
  if (by !== "model" && before >= maxInterruptions) {
    const told = reason === undefined ? tooOften : `${tooOften}: ${reason}`;
    return failed(attempt, task, { error: fingerprint(told), message: evidence(told) }, null, nowMs);
  }
  const { level, pattern } = attempt;
  return [
    { type: "end-attempt", task: task.id, attempt: attempt.number, keepSandbox: true },
    {
      type: "retry-task",
      task: task.id,
      failed: null,
      interruption: { by, reason },
      next: { level, pattern, from: "last-attempt" },
      notBeforeMs: nowMs + Math.min(15_000 * 2 ** before, maxWaitMs),
    },
  ];
}

/** What waits for a task that failed can not begin any more, nor can what waits for that. */
export function failBlocked(state: BuildState): BuildAction[] {
  const failedTasks = new Set(state.tasks.filter(({ status }) => status === "failed").map(({ id }) => id));
  const actions: BuildAction[] = [];
  for (let found = true; found; ) {
    found = false;
    for (const { id, status, dependencies } of state.tasks) {
      const blocker = dependencies.find((dependency) => failedTasks.has(dependency));
      if (blocker === undefined || status !== "pending" || failedTasks.has(id)) continue;
      failedTasks.add(id);
      found = true;
      actions.push({ type: "fail-task", task: id, failure: { reason: "dependency", task: blocker } });
    }
  }
  return actions;
}
