import { keepEndsOf } from "../system/output.ts";
import type { Board, BoardTask } from "./board.ts";

/** The instructions of an agent: its role, and the context for all. */
export function instructionsFor(agent: string, workers: number, context: readonly string[]): string {
  const role = workers === 0 ? [] : [agent === "lead" ? leadRole(workers) : workerRole];
  return [...role, ...context].filter((part) => part !== "").join("\n\n");
}

function leadRole(workers: number): string {
  return (
    `You lead a team. Up to ${workers} workers share your sandbox and its files. Put work that can be done in parallel on ` +
    "the list with add_tasks, each task complete in itself and on its own files; then end your turn. When the workers are " +
    "done, you get their results to combine and check. Do small or closely connected work yourself."
  );
}

const workerRole =
  "You work in a team that shares one sandbox and its files. Do your task and nothing else; leave other tasks' files alone. " +
  "Use write_note to put what the others must know on the scratchpad.";

const maxNotesBytes = 16 * 1024;
const maxResultBytes = 4 * 1024;
const maxResultsBytes = 64 * 1024;

export function taskPrompt({ title, details }: BoardTask, notes: Board["notes"]): string {
  const lines = notes.map(({ agent, text }) => `${agent}: ${text}`).join("\n");
  const known = lines === "" ? "" : `Notes of the team:\n${keepEndsOf(lines, maxNotesBytes)}`;
  return [`Your task: ${title}`, details, known].filter((part) => part !== "").join("\n\n");
}

/** The prompt for the lead when its workers are done. The results are the workers' own words. */
export function resultsPrompt(tasks: readonly BoardTask[]): string {
  const results = tasks.map(
    ({ id, title, status, result }) => `${id} ${title}: ${status}\n${keepEndsOf(result, maxResultBytes)}`,
  );
  const words = "The workers are done. Combine their work, check it, and finish. Their results:";
  return `${words}\n\n${keepEndsOf(results.join("\n\n"), maxResultsBytes)}`;
}
