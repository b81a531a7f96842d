import { keepEndsOf } from "../system/output.ts";
import type { Board, BoardTask } from "./board.ts";

/** For every agent of a run: what all know, and who it is. */
export function instructionsFor(agent: string, workers: number, context: readonly string[]): string {
  const role = workers === 0 ? [] : [agent === "lead" ? leadRole(workers) : workerRole];
  return [...role, ...context].filter((part) => part !== "").join("\n\n");
}

function leadRole(workers: number): string {
  return (
    `You lead a team. Up to ${workers} workers share your sandbox and its files. What can be done side by side, put on the ` +
    "list with add_tasks, each task whole in itself and on files of its own; then end your turn. When the workers are done " +
    "you get their results, to put them together and to check them. What is small or hangs together, do yourself."
  );
}

const workerRole =
  "You work in a team that shares one sandbox and its files. Do your task and nothing else; leave other tasks' files alone. " +
  "Write what the others must know on the scratchpad with write_note.";

const maxNotesBytes = 16 * 1024;
const maxResultBytes = 4 * 1024;
const maxResultsBytes = 64 * 1024;

export function taskPrompt({ title, details }: BoardTask, notes: Board["notes"]): string {
  const lines = notes.map(({ agent, text }) => `${agent}: ${text}`).join("\n");
  const known = lines === "" ? "" : `Notes of the team:\n${keepEndsOf(lines, maxNotesBytes)}`;
  return [`Your task: ${title}`, details, known].filter((part) => part !== "").join("\n\n");
}

/** What the lead gets when its workers are done. The results are the workers' own words. */
export function resultsPrompt(tasks: readonly BoardTask[]): string {
  const results = tasks.map(
    ({ id, title, status, result }) => `${id} ${title}: ${status}\n${keepEndsOf(result, maxResultBytes)}`,
  );
  const words = "The workers are done. Put their work together, check it, and finish. Their results:";
  return `${words}\n\n${keepEndsOf(results.join("\n\n"), maxResultsBytes)}`;
}
