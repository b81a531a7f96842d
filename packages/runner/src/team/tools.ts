import { z } from "zod";
import type { TeamTool } from "../agents/driver.ts";
import { type Board, boardLimits, newTaskSchema } from "./board.ts";
import { defineTeamTool } from "./tool.ts";

const addTasks = z.strictObject({ tasks: z.array(newTaskSchema).min(1).max(boardLimits.tasks) });
const writeNote = z.strictObject({ text: z.string().trim().min(1).max(boardLimits.noteChars) });

/** The team's tools for one agent. Only the lead can add tasks. */
export function teamTools(board: Board, agent: string): TeamTool[] {
  const forLead = defineTeamTool(
    "add_tasks",
    "Adds tasks to the team's list. Workers start on them in parallel when your turn ends. A worker sees only the title, " +
      "the details and the notes.",
    addTasks,
    ({ tasks }) => `Added: ${board.add(tasks).map(titled).join(", ")}`,
  );
  return [
    ...(agent === "lead" ? [forLead] : []),
    withoutInput(
      "list_tasks",
      "Lists the team's tasks, with the results of those that are done.",
      () => board.tasks.map(described).join("\n") || "[no tasks]",
    ),
    defineTeamTool(
      "write_note",
      "Writes a note on the scratchpad that the whole team reads.",
      writeNote,
      ({ text }) => {
        board.write({ agent, text });
        return "Noted.";
      },
    ),
    withoutInput(
      "read_notes",
      "Shows the notes on the team's scratchpad.",
      () => board.notes.map((note) => `${note.agent}: ${note.text}`).join("\n") || "[no notes]",
    ),
  ];
}

/** Ignores stray arguments of a model. */
function withoutInput(name: string, description: string, run: () => string): TeamTool {
  const tool = defineTeamTool(name, description, z.strictObject({}), run);
  return { ...tool, run: () => tool.run({}) };
}

function titled({ id, title }: { readonly id: number; readonly title: string }): string {
  return `${id} ${title}`;
}

function described(task: Board["tasks"][number]): string {
  const result = task.result === "" ? "" : `\n${task.result}`;
  return `${titled(task)} [${task.status}${task.owner === undefined ? "" : ` by ${task.owner}`}]${result}`;
}
