import { mkdir, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { createLane, openBranchPath, type TaskOrder, type TaskPhase } from "@slipway/contract";
import { z } from "zod";
import { claimEnd } from "../supervise/end.ts";
import { assembleCrew, type Crew, type CrewParts } from "../team/crew.ts";
import type { SharedPart } from "../team/inbox.ts";
import type { RunProgress } from "../team/progress.ts";
import { type BesideChecks, createBesideChecks, findingOf } from "./beside.ts";
import { type Checks, createChecks } from "./checks.ts";
import { createJournal, type Once } from "./journal.ts";
import { mainRef } from "./link.ts";
import { TaskRunOver } from "./over.ts";
import { openRepository, type Repository } from "./repository.ts";
import { phaseTools } from "./tools.ts";

export interface AttemptParts extends CrewParts {
  readonly order: TaskOrder;
}

/** One attempt at a task, as its phases see it. */
export interface Attempt {
  readonly order: TaskOrder;
  readonly progress: RunProgress;
  readonly repository: Repository;
  readonly checks: Checks;
  readonly beside: BesideChecks;
  readonly crew: Crew;
  readonly signal: AbortSignal;
  /** The last commit of the branch. */
  tip(): string;
  emit: CrewParts["emit"];
  readonly once: Once;
  phase<T>(phase: TaskPhase, round: number, schema: z.ZodType<T>, work: () => Promise<T>): Promise<T>;
  /** Gives the agents a prompt and commits what they leave. Ends the run if they do not complete it. */
  turn(name: string, prompt: string, options?: TurnOptions): Promise<void>;
  /** Resolves when the shared files are as the host last sent them. */
  share(): Promise<void>;
}

export interface TurnOptions {
  readonly model?: string | undefined;
  /** A main that is part of the branch after the turn. */
  readonly merged?: string;
}

export async function openAttempt(parts: AttemptParts): Promise<Attempt> {
  const { order, task, progress, controls, directory, environment, signal } = parts;
  const { workdir } = task;
  const { inbox } = progress;
  const repository = openRepository({ order, directory, workdir, environment });
  const onCriterion = (criterion: string, satisfied: boolean) =>
    progress.keep({ criteria: { ...progress.phases.criteria, [criterion]: satisfied } });
  const emit: CrewParts["emit"] = async (event) => {
    await parts.emit(event);
    if (event.type === "agent" && event.event.type === "tool" && event.event.phase === "end") beside.look();
  };
  const tools = () => phaseTools({ order, inbox, emit, onCriterion, signal });
  const crew = await assembleCrew({ ...parts, emit, tools });
  const journal = createJournal(progress.phases.journal, (step, result) =>
    progress.keep({ journal: { ...progress.phases.journal, [step]: result } }),
  );
  const tip = () => progress.phases.tip ?? order.base;
  const once: Once = async (step, schema, work) => {
    signal.throwIfAborted();
    if (progress.remainingMs() <= 1) throw new TaskRunOver(claimEnd("timeout", "the run's time is over"));
    return await journal(step, schema, work);
  };
  /** Works on the branch, one piece of work after another. */
  const inLine = createLane();
  /** Lets other attempts learn of overlaps. */
  const show = async (commit: string) => {
    if (commit === progress.phases.shown) return;
    // An obstacle left by an agent must not cost the attempt: a later bundle may succeed.
    await repository.bundle(openBranchPath(order), commit, [order.base, mainRef]).catch(() => {});
    await emit({ type: "committed", commit });
    await progress.keep({ shown: commit });
  };
  const commit = (merged?: string) =>
    inLine(async () => {
      const next = await repository.commit(tip(), order.task.title, merged);
      if (next === tip()) return;
      await progress.keep({ tip: next });
      await show(next);
    });
  const sharing = createLane();
  /** One after another: each removes the files of the one before. */
  const share = () => sharing(() => writeShared(workdir, inbox.shared));
  const checksParts = { order, repository, workdir, environment, emit, remainingMs: progress.remainingMs };
  const besideDirectory = join(directory, "beside");
  // Left by a killed runner.
  await rm(besideDirectory, { recursive: true, force: true, maxRetries: 3 });
  const beside = createBesideChecks({
    tip,
    latest: () => repository.latest(tip()),
    onCommit: (seen) =>
      inLine(async () => {
        // The branch may have moved on.
        if ((await repository.latest(tip())) === seen) await show(seen);
      }),
    async check(commit, until) {
      const place = join(besideDirectory, commit);
      await mkdir(place, { recursive: true });
      const checks = createChecks({ ...checksParts, directory: place, signal: until, once: (_, __, work) => work() });
      try {
        return await checks.inCleanCheckout("checkout", "build", commit);
      } finally {
        await rm(place, { recursive: true, force: true, maxRetries: 3 });
      }
    },
    onFailure: (failure, commit) => controls.find([findingOf(failure, commit)]),
  });
  return {
    order,
    progress,
    repository,
    crew,
    signal,
    tip,
    emit,
    once,
    beside,
    share,
    checks: createChecks({ ...checksParts, directory, signal, once }),
    async phase(phase, round, schema, work) {
      return await once(`${phase} ${round}`, schema, async () => {
        await emit({ type: "phase", phase, status: "begun", round });
        try {
          const result = await work();
          await emit({ type: "phase", phase, status: "finished", round });
          return result;
        } catch (error) {
          await emit({ type: "phase", phase, status: "failed", round });
          throw error;
        }
      });
    },
    async turn(name, prompt, { model, merged } = {}) {
      await once(`turn ${name}`, z.null(), async () => {
        const goesOn = progress.phases.turn === name;
        const stage = goesOn ? progress.stage : ({ name: "lead", round: 1, prompt } as const);
        progress.enter(stage);
        await progress.keep({ turn: name });
        await share();
        const end = await crew.work(stage, { name, model, onTurn: () => commit(merged) });
        if (end.reason === "completed") return null;
        throw new TaskRunOver(end);
      });
    },
  };
}

/** Keeps the shared files up to date with the host, until the signal. */
export async function followShared({ progress: { inbox }, share }: Attempt, signal: AbortSignal): Promise<void> {
  for (let written: readonly SharedPart[] | undefined; !signal.aborted; ) {
    // Changes during the last write are not announced again.
    if (inbox.shared === written) await inbox.changed(signal);
    else {
      written = inbox.shared;
      await share();
    }
  }
}

/** For agents that prefer files to the tool. An agent's obstacle stays in place: the tool has the truth. */
async function writeShared(workdir: string, shared: readonly SharedPart[]): Promise<void> {
  const own = join(workdir, ".slipway");
  const directory = join(own, "context");
  try {
    await mkdir(own, { recursive: true });
    await writeFile(join(own, ".gitignore"), "*\n");
    await rm(directory, { recursive: true, force: true });
    await mkdir(directory);
    for (const { name, text } of shared) await writeFile(join(directory, `${name}.md`), text);
  } catch (error) {
    if (!(error instanceof Error && "code" in error)) throw error;
  }
}
