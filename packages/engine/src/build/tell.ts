import type { NewEvent } from "../ports/store.ts";
import type { BuildAction } from "./actions.ts";

const types: Readonly<Record<BuildAction["type"], string>> = {
  "begin-stage": "stage.began",
  "start-attempt": "attempt.started",
  "respawn-attempt": "attempt.respawned",
  "pause-attempt": "attempt.paused",
  "resume-attempt": "attempt.resumed",
  "end-attempt": "attempt.closed",
  "retry-task": "task.retried",
  "merge-task": "task.merged",
  "satisfy-task": "task.satisfied",
  "fail-task": "task.failed",
  "warn-budget": "budget.warned",
  "pause-build": "build.paused",
  "resume-build": "build.resumed",
  "check-satisfaction": "satisfaction.asked",
  "plan-remaining": "remaining.asked",
  "end-build": "build.ended",
};

/** A decision, as those who follow the build read it. */
export function tellDecision({ type, ...data }: BuildAction): NewEvent {
  return { type: types[type], data: JSON.parse(JSON.stringify(data)) };
}
