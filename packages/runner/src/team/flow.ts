import { type ClaimedEnd, endText } from "@slipway/contract";
import { claimEnd } from "../supervise/end.ts";
import type { Board, BoardTask } from "./board.ts";
import { resultsPrompt, taskPrompt } from "./prompts.ts";

/** The limit of the lead's rounds. */
const maxRounds = 5;

/** Where a run is between two turns of the lead. */
export type Stage =
  | { readonly name: "lead"; readonly round: number; readonly prompt: string }
  /** Works on the tasks from `firstTask` on. */
  | { readonly name: "workers"; readonly round: number; readonly firstTask: number };

export interface Team {
  readonly board: Board;
  readonly workers: number;
  readonly signal: AbortSignal;
  /** Called before a stage begins. */
  onStage(stage: Stage): void;
  lead(turn: string, prompt: string): Promise<ClaimedEnd>;
  /** Runs a fresh agent for one task. */
  worker(name: string, turn: string, prompt: string): Promise<ClaimedEnd>;
}

/** The lead works and may hand out tasks, workers do them, and the lead combines the results, in a few rounds. */
export async function runTeam(team: Team, start: Stage): Promise<ClaimedEnd> {
  for (let stage = start; ; ) {
    team.onStage(stage);
    const { round } = stage;
    if (stage.name === "workers") {
      await runWorkers(team);
      if (team.signal.aborted) return claimEnd("cancelled");
      stage = { name: "lead", round: round + 1, prompt: resultsPrompt(team.board.tasks.slice(stage.firstTask - 1)) };
      continue;
    }
    const end = await team.lead(`lead-${round}`, stage.prompt);
    const next = team.workers > 0 ? team.board.tasks.find(isOpen) : undefined;
    if (end.reason !== "completed" || next === undefined || round === maxRounds || team.signal.aborted) return end;
    stage = { name: "workers", round, firstTask: next.id };
  }
}

async function runWorkers(team: Team): Promise<void> {
  const names = Array.from({ length: team.workers }, (_, index) => `worker-${index + 1}`);
  await Promise.all(names.map((name) => workOff(name, team)));
}

async function workOff(name: string, { board, signal, worker }: Team): Promise<void> {
  for (let task = board.claim(name); task !== undefined; task = board.claim(name)) {
    const end = await worker(name, `task-${task.id}`, taskPrompt(task, board.notes));
    // A run that is ending leaves its tasks as they are.
    if (signal.aborted) return;
    board.finish(task.id, outcomeOf(end));
  }
}

function outcomeOf(end: ClaimedEnd): { readonly ok: boolean; readonly result: string } {
  const ok = end.reason === "completed";
  return { ok, result: ok ? end.message : endText(end) };
}

function isOpen({ status }: BoardTask): boolean {
  return status === "pending" || status === "in_progress";
}
