import type { RunId, RunTask, TeamTask } from "@slipway/contract";
import { type Board, createBoard, type Note } from "./board.ts";
import type { Checkpoint, PhasesProgress } from "./checkpoint.ts";
import type { Stage } from "./flow.ts";
import { createInbox, type Inbox } from "./inbox.ts";
import { createMailbox, type Mailbox } from "./mailbox.ts";

/** The progress of a run. Every change is saved; a failed save ends the run. */
export interface RunProgress {
  readonly mailbox: Mailbox;
  readonly inbox: Inbox;
  readonly board: Board;
  readonly stage: Stage;
  enter(stage: Stage): void;
  /** Progress of a task run. */
  readonly phases: PhasesProgress;
  /** Resolves when it is on disk. */
  keep(change: Partial<PhasesProgress>): Promise<void>;
  /** The host's last message to this run that was obeyed. */
  readonly heard: number;
  /** Resolves when the message's effect is on disk. */
  hear(sequence: number): Promise<void>;
  /** Counts a finished tool call. */
  countStep(): void;
  /** What is left of the run's time. A resumed run has only the rest. */
  remainingMs(): number;
  /** Resolves when everything is on disk. */
  save(): Promise<void>;
}

export interface ProgressOptions {
  readonly run: RunId;
  readonly task: RunTask;
  readonly checkpoint: Checkpoint;
  onTask(task: TeamTask): void;
  onNote(note: Note): void;
  onFailure(error: unknown): void;
}

const begin: PhasesProgress = { journal: {}, tip: null, turn: null, criteria: {} };

export function followProgress({ run, task, checkpoint, ...on }: ProgressOptions): RunProgress {
  const { found } = checkpoint;
  const startedAt = performance.now();
  const spentMs = () => (found?.spentMs ?? 0) + performance.now() - startedAt;
  let step = found?.step ?? 0;
  // An earlier run, whose work this one continues, received other messages.
  let heard = found?.run === run ? (found.heard ?? 0) : 0;
  let stage: Stage = found?.stage ?? { name: "lead", round: 1, prompt: task.prompt };
  let phases = found?.phases ?? begin;
  let sharing: Promise<void> = Promise.resolve();
  const save = () =>
    checkpoint.save({
      step,
      run,
      heard,
      spentMs: spentMs(),
      stage,
      board: board.state(),
      mail: mailbox.state(),
      ...(task.order !== undefined && { phases, inbox: inbox.state() }),
    });
  const changed = () => void save().catch(on.onFailure);
  const board = createBoard(found?.board, ({ task: changedTask, note }) => {
    if (changedTask !== undefined) on.onTask(changedTask);
    if (note !== undefined) on.onNote(note);
    changed();
  });
  const mailbox = createMailbox(found?.mail, changed);
  const inbox = createInbox({
    found: found?.inbox,
    shared: checkpoint.shared ?? task.order?.shared ?? [],
    onChange: changed,
    onShare(shared) {
      sharing = checkpoint.saveShared(shared);
      sharing.catch(on.onFailure);
    },
  });
  return {
    mailbox,
    inbox,
    board,
    get stage() {
      return stage;
    },
    enter(next) {
      stage = next;
      changed();
    },
    get phases() {
      return phases;
    },
    async keep(change) {
      phases = { ...phases, ...change };
      await save();
    },
    get heard() {
      return heard;
    },
    async hear(sequence) {
      await sharing;
      heard = sequence;
      await save();
    },
    countStep() {
      step++;
      changed();
    },
    remainingMs: () => Math.max(1, Math.ceil(task.limits.totalMs - spentMs())),
    save,
  };
}
