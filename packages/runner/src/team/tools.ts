import { z } from "zod";
import type { TeamTool } from "../agents/driver.ts";
import { keepEndsOf } from "../system/output.ts";
import { type Board, boardLimits, newTaskSchema } from "./board.ts";

const maxAnswerBytes = 64 * 1024;

interface Definition {
  readonly name: string;
  readonly description: string;
  readonly schema: z.ZodType;
  /** Workers do their task; only the lead hands out more. */
  readonly leadOnly?: boolean;
}

const addTasks = z.strictObject({ tasks: z.array(newTaskSchema).min(1).max(boardLimits.tasks) });
const writeNote = z.strictObject({ text: z.string().trim().min(1).max(boardLimits.noteChars) });
const nothing = z.strictObject({});

const definitions = [
  {
    name: "add_tasks",
    description:
      "Puts tasks on the team's list. Workers begin with them, side by side and each on its own, when your turn ends. A " +
      "worker knows only the title, the details and the notes.",
    schema: addTasks,
    leadOnly: true,
  },
  { name: "list_tasks", description: "Shows the team's tasks, and what came of those that are done.", schema: nothing },
  { name: "write_note", description: "Writes a note on the scratchpad that the whole team reads.", schema: writeNote },
  { name: "read_notes", description: "Shows the notes on the team's scratchpad.", schema: nothing },
] as const satisfies readonly Definition[];

/** For one agent. An input that is wrong is refused with words for the model. */
export function teamTools(board: Board, agent: string): TeamTool[] {
  const run: Record<string, (input: unknown) => string> = {
    add_tasks: (input) => `On the list: ${board.add(parse(addTasks, input).tasks).map(titled).join(", ")}`,
    list_tasks: () => board.tasks.map(described).join("\n") || "[no tasks]",
    write_note: (input) => {
      board.write({ agent, text: parse(writeNote, input).text });
      return "Noted.";
    },
    read_notes: () => board.notes.map((note) => `${note.agent}: ${note.text}`).join("\n") || "[no notes]",
  };
  return definitions
    .filter((definition) => agent === "lead" || !("leadOnly" in definition))
    .map(({ name, description, schema }) => ({
      name,
      description,
      schema: z.toJSONSchema(schema, { io: "input" }),
      run: async (input) => keepEndsOf(run[name]?.(input) ?? "", maxAnswerBytes),
    }));
}

function parse<T>(schema: z.ZodType<T>, input: unknown): T {
  const parsed = schema.safeParse(input);
  if (parsed.success) return parsed.data;
  throw new Error(z.prettifyError(parsed.error));
}

function titled({ id, title }: { readonly id: number; readonly title: string }): string {
  return `${id} ${title}`;
}

function described(task: Board["tasks"][number]): string {
  const result = task.result === "" ? "" : `\n${task.result}`;
  return `${titled(task)} [${task.status}${task.owner === undefined ? "" : ` by ${task.owner}`}]${result}`;
}
