import type { RunTask, TeamTask } from "@slipway/contract";
import type { Checkpoint } from "./checkpoint.ts";
import { createMailbox, type Mailbox } from "./mailbox.ts";
import { type Board, createBoard, type Note } from "./team/board.ts";
import type { Stage } from "./team/flow.ts";

/** How far the run is. Every change is saved; a save that fails ends the run. */
export interface RunProgress {
  readonly mailbox: Mailbox;
  readonly board: Board;
  readonly stage: Stage;
  enter(stage: Stage): void;
  /** A tool call has ended. */
  countStep(): void;
  /** What is left of the run's time; a run that was ended and goes on has only the rest. */
  remainingMs(): number;
  /** Answers when all of it is on disk. */
  save(): Promise<void>;
}

export interface ProgressOptions {
  readonly task: RunTask;
  readonly checkpoint: Checkpoint;
  onTask(task: TeamTask): void;
  onNote(note: Note): void;
  onFailure(error: unknown): void;
}

export function followProgress({ task, checkpoint, ...on }: ProgressOptions): RunProgress {
  const { found } = checkpoint;
  const startedAt = performance.now();
  const spentMs = () => (found?.spentMs ?? 0) + performance.now() - startedAt;
  let step = found?.step ?? 0;
  let stage: Stage = found?.stage ?? { name: "lead", round: 1, prompt: task.prompt };
  const save = () => checkpoint.save({ step, spentMs: spentMs(), stage, board: board.state(), mail: mailbox.state() });
  const changed = () => void save().catch(on.onFailure);
  const board = createBoard(found?.board, ({ task: changedTask, note }) => {
    if (changedTask !== undefined) on.onTask(changedTask);
    if (note !== undefined) on.onNote(note);
    changed();
  });
  const mailbox = createMailbox(found?.mail, changed);
  return {
    mailbox,
    board,
    get stage() {
      return stage;
    },
    enter(next) {
      stage = next;
      changed();
    },
    countStep() {
      step++;
      changed();
    },
    remainingMs: () => Math.max(1, Math.ceil(task.limits.totalMs - spentMs())),
    save,
  };
}
