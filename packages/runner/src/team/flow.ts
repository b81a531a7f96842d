import type { FinalEvent } from "../supervise.ts";
import type { Board, BoardTask } from "./board.ts";
import { resultsPrompt, taskPrompt } from "./prompts.ts";

/** The lead is asked to go on at most so often. */
const maxRounds = 5;

/** Where a run is between two turns of the lead. */
export type Stage =
  | { readonly name: "lead"; readonly round: number; readonly prompt: string }
  | { readonly name: "workers"; readonly round: number };

export interface Team {
  readonly board: Board;
  readonly workers: number;
  readonly signal: AbortSignal;
  /** Called before a stage begins. */
  onStage(stage: Stage): void;
  lead(turn: string, prompt: string): Promise<FinalEvent>;
  /** A fresh agent for one task. */
  worker(name: string, turn: string, prompt: string): Promise<FinalEvent>;
}

/** The lead works and may hand out tasks; workers do these; the lead puts the results together; and so on, a few times. */
export async function runTeam(team: Team, start: Stage): Promise<FinalEvent> {
  for (let stage = start; ; ) {
    team.onStage(stage);
    if (stage.name === "workers") {
      const before = team.board.tasks.filter(isOpen);
      await runWorkers(team);
      const done = before.map(({ id }) => team.board.tasks[id - 1]).filter((task) => task !== undefined);
      stage = { name: "lead", round: stage.round + 1, prompt: resultsPrompt(done) };
      continue;
    }
    const final = await team.lead(`lead-${stage.round}`, stage.prompt);
    const handedOut = team.workers > 0 && team.board.tasks.some(isOpen);
    const goesOn = final.type === "done" && final.outcome === "completed" && handedOut && stage.round < maxRounds;
    if (!goesOn || team.signal.aborted) return final;
    stage = { name: "workers", round: stage.round };
  }
}

async function runWorkers(team: Team): Promise<void> {
  const names = Array.from({ length: team.workers }, (_, index) => `worker-${index + 1}`);
  await Promise.all(names.map((name) => workOff(name, team)));
}

async function workOff(name: string, { board, signal, worker }: Team): Promise<void> {
  for (let task = board.claim(name); task !== undefined && !signal.aborted; task = board.claim(name)) {
    const final = await worker(name, `task-${task.id}`, taskPrompt(task, board.notes));
    // A run that is ended leaves its tasks as they are.
    if (signal.aborted) return;
    board.finish(task.id, outcomeOf(final));
  }
}

function outcomeOf(final: FinalEvent): { readonly ok: boolean; readonly result: string } {
  if (final.type === "error") return { ok: false, result: `${final.kind}: ${final.message}` };
  const ok = final.outcome === "completed";
  return { ok, result: ok ? final.text : `${final.outcome}: ${final.text}` };
}

function isOpen({ status }: BoardTask): boolean {
  return status === "pending" || status === "in_progress";
}
