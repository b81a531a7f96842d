import type { PauseReason } from "@slipway/contract";
import type { BuildAction } from "./actions.ts";
import type { BuildState, Pause } from "./state.ts";

export function pauseOrResume(state: BuildState): BuildAction[] {
  const { status, wish, pause } = state;
  if (status === "running" && wish.kind === "pause") return pauseAll(state, "user");
  if (pause === null || wish.kind !== "run" || !isOver(pause, state)) return [];
  if (state.spentMicroUsd < state.settings.budgetMicroUsd) return [{ type: "resume-build" }];
  return pause.reason === "budget" ? [] : pauseAll(state, "budget");
}

/** Attempts are kept as they are, and continue with the build. */
export function pauseAll({ attempts, settings }: BuildState, reason: PauseReason): BuildAction[] {
  return [
    { type: "pause-build", reason, budgetMicroUsd: settings.budgetMicroUsd },
    ...attempts
      .filter(({ pausedAtMs }) => pausedAtMs === null)
      .map(({ task, number }) => ({ type: "pause-attempt", task, attempt: number }) as const),
  ];
}

function isOver({ reason, atMs, budgetMicroUsd }: Pause, { wish, settings }: BuildState): boolean {
  switch (reason) {
    case "user":
      return true;
    case "budget":
      // Money that others had reserved may be free by now: a resume asks for it again.
      return settings.budgetMicroUsd > budgetMicroUsd || wish.atMs > atMs;
    case "stuck":
      return wish.atMs > atMs;
  }
}
