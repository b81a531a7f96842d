import { SlipwayError, type TeamTask } from "@slipway/contract";
import { z } from "zod";

export const boardLimits = {
  tasks: 64,
  titleChars: 200,
  detailsChars: 16 * 1024,
  notes: 200,
  noteChars: 4 * 1024,
  resultChars: 8 * 1024,
} as const;

export const newTaskSchema = z.strictObject({
  title: z.string().trim().min(1).max(boardLimits.titleChars),
  details: z.string().max(boardLimits.detailsChars).default(""),
});
export type NewTask = z.output<typeof newTaskSchema>;

const taskSchema = newTaskSchema.extend({
  id: z.int().min(1),
  status: z.enum(["pending", "in_progress", "completed", "failed"]),
  owner: z.string().optional(),
  /** What its worker said at the end, or why it failed. */
  result: z.string().default(""),
});
export type BoardTask = z.output<typeof taskSchema>;

const noteSchema = z.strictObject({ agent: z.string(), text: z.string() });
export type Note = z.output<typeof noteSchema>;

export const boardSchema = z.strictObject({ tasks: z.array(taskSchema), notes: z.array(noteSchema) });
export type BoardState = z.output<typeof boardSchema>;

/** The task list and the scratchpad that the agents of one run share. */
export interface Board {
  readonly tasks: readonly BoardTask[];
  readonly notes: readonly Note[];
  add(tasks: readonly NewTask[]): readonly BoardTask[];
  /** Returns the task that this owner has started, or else the next free one. */
  claim(owner: string): BoardTask | undefined;
  finish(id: number, outcome: { readonly ok: boolean; readonly result: string }): void;
  write(note: Note): void;
  state(): BoardState;
}

export interface BoardChange {
  readonly task?: TeamTask;
  readonly note?: Note;
}

export function createBoard(found: BoardState | undefined, onChange: (change: BoardChange) => void): Board {
  const tasks: BoardTask[] = [...(found?.tasks ?? [])];
  const notes: Note[] = [...(found?.notes ?? [])];
  const put = (task: BoardTask): BoardTask => {
    tasks[task.id - 1] = task;
    const { id, title, status, owner } = task;
    onChange({ task: { id, title, status, ...(owner !== undefined && { owner }) } });
    return task;
  };
  return {
    tasks,
    notes,
    add(added) {
      if (tasks.length + added.length > boardLimits.tasks) {
        throw new SlipwayError(
          "too_large",
          `The list holds at most ${boardLimits.tasks} tasks; it has ${tasks.length}.`,
        );
      }
      return added.map((task) => put({ ...task, id: tasks.length + 1, status: "pending", result: "" }));
    },
    claim(owner) {
      const begun = tasks.find((task) => task.status === "in_progress" && task.owner === owner);
      if (begun !== undefined) return begun;
      const next = tasks.find((task) => task.status === "pending");
      return next && put({ ...next, status: "in_progress", owner });
    },
    finish(id, { ok, result }) {
      const task = tasks[id - 1];
      if (task === undefined) return;
      put({ ...task, status: ok ? "completed" : "failed", result: result.slice(0, boardLimits.resultChars) });
    },
    write(note) {
      if (notes.length >= boardLimits.notes) {
        throw new SlipwayError("too_large", `The scratchpad holds at most ${boardLimits.notes} notes.`);
      }
      notes.push(note);
      onChange({ note });
    },
    state: () => ({ tasks: [...tasks], notes: [...notes] }),
  };
}
