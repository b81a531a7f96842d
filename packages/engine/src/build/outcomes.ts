import { afterEnd, type End, endText } from "@slipway/contract";
import type { BuildAction } from "./actions.ts";
import { escalate } from "./escalate.ts";
import { evidence, fingerprint } from "./fingerprint.ts";
import { isRefused } from "./money.ts";
import { type AttemptState, type BuildState, isDoneBy, type Outcome, type TaskState } from "./state.ts";
import { outcomeOf } from "./watch.ts";

const maxRespawns = 5;
const maxInterruptions = 10;
const maxWaitMs = 10 * 60_000;

/** What is on main counts, even if the build ends in the same turn. */
export function settleMerged(state: BuildState, nowMs: number): BuildAction[] {
  return settleOutcomes(state, nowMs, isDoneBy);
}

/** What follows from how attempts ended. */
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
  switch (afterEnd(outcome)) {
    case "done": {
      const { main } = outcome;
      return [
        { type: "end-attempt", ...name, keepSandbox: false },
        main === undefined ? { type: "merge-task", task: task.id } : { type: "satisfy-task", task: task.id, main },
      ];
    }
    case "retry":
      return failed(attempt, task, endText(outcome), outcome.pattern ?? null, nowMs);
    case "respawn":
      if (!state.settings.respawn || attempt.respawns >= maxRespawns) {
        return failed(attempt, task, "the sandbox died", null, nowMs);
      }
      // It comes back when the build is resumed and has a slot for it: see schedule.ts.
      if (attempt.pausedAtMs !== null) return [];
      return [{ type: "respawn-attempt", ...name, respawn: attempt.respawns + 1 }];
    case "wait":
      return interrupted(attempt, task, outcome, nowMs);
    case "pay":
      // The build is paused for it: see money.ts. Unless there is more money by now.
      if (attempt.pausedAtMs !== null || isRefused(outcome, state.settings)) return [];
      return [{ type: "resume-attempt", ...name }];
  }
}

function failed(
  attempt: AttemptState,
  task: TaskState,
  text: string,
  pattern: string | null,
  nowMs: number,
): BuildAction[] {
  const told = { error: fingerprint(text), message: evidence(text) };
  const failure = { level: attempt.level, pattern: attempt.pattern, ...told };
  const next = escalate(task, failure, pattern);
  const end = { type: "end-attempt", task: task.id, attempt: attempt.number } as const;
  if (next === null) {
    return [
      { ...end, keepSandbox: false },
      { type: "fail-task", task: task.id, failure: { reason: "exhausted", ...told } },
    ];
  }
  return [
    { ...end, keepSandbox: next.from === "last-attempt" },
    { type: "retry-task", task: task.id, failed: failure, next, notBeforeMs: nowMs },
  ];
}

/**
 * Not the attempt's failure, so it is no try. A model's limit may last a night; other troubles are waited out only so
 * often.
 */
function interrupted(
  attempt: AttemptState,
  task: TaskState,
  { reason, by, message }: End,
  nowMs: number,
): BuildAction[] {
  const before = by === "model" ? task.modelInterruptions : task.interruptions;
  if (by !== "model" && before >= maxInterruptions) {
    return failed(attempt, task, `interrupted too often: ${endText({ reason, message })}`, null, nowMs);
  }
  const { level, pattern } = attempt;
  return [
    { type: "end-attempt", task: task.id, attempt: attempt.number, keepSandbox: true },
    {
      type: "retry-task",
      task: task.id,
      failed: null,
      interruption: { reason, by, message },
      next: { level, pattern, from: "last-attempt" },
      notBeforeMs: nowMs + Math.min(15_000 * 2 ** before, maxWaitMs),
    },
  ];
}

/** A task that depends on a failed one cannot begin any more, nor can its own dependents. */
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
