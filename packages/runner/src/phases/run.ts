import {
  type ClaimedEnd,
  commitSchema,
  findingSchema,
  type Offered,
  offeredSchema,
  offerPath,
} from "@slipway/contract";
import { z } from "zod";
import { claimEnd } from "../supervise/end.ts";
import { findingsPrompt } from "../team/host-words.ts";
import { type Attempt, type AttemptParts, followShared, openAttempt } from "./attempt.ts";
import { type Failure, failureSchema } from "./checks.ts";
import { TaskRunOver } from "./over.ts";
import {
  buildPrompt,
  cleanFixPrompt,
  conflictPrompt,
  fixPrompt,
  goOnWithWords,
  intentPrompt,
  unsolvedPrompt,
} from "./prompts.ts";
import { testsAmong } from "./tests-among.ts";

/** How often an offer may come back. */
const maxRounds = 20;
/** How often an agent may leave conflict marks. */
const maxConflictTurns = 3;

const nothing = z.null();

/**
 * Takes one task of a plan through the six phases and offers the result. Each finished step is on disk: a restarted
 * runner continues after the last one.
 */
export async function runPhases(parts: AttemptParts): Promise<ClaimedEnd> {
  const over = new AbortController();
  try {
    const attempt = await openAttempt(parts);
    await attempt.phase("initialise", 1, nothing, () => initialise(attempt));
    void followShared(attempt, over.signal);
    return await takeThrough(attempt);
  } catch (error) {
    if (parts.signal.aborted) return claimEnd("cancelled");
    if (error instanceof TaskRunOver) return error.end;
    throw error;
  } finally {
    over.abort();
  }
}

async function takeThrough(attempt: Attempt): Promise<ClaimedEnd> {
  const { phase, checks, beside } = attempt;
  let main = attempt.order.base;
  let hasStated = false;
  for (let round = 1; round <= maxRounds; round++) {
    await phase("build", round, nothing, () =>
      beside.during(() => (round === 1 ? build(attempt) : workOver(attempt, round))),
    );
    main = await phase("integrate", round, commitSchema, () => integrate(attempt, round, main));
    // The host checks what main already has.
    if (await attempt.once(`work ${round}`, z.boolean(), () => hasWork(attempt, main))) {
      await phase("test", round, nothing, () =>
        pass(attempt, `test-${round}`, (step, commit) => checks.inWorkspace(step, "test", commit), fixPrompt),
      );
      if (!hasStated) await phase("intent", round, nothing, () => stateCriteria(attempt));
      hasStated = true;
      await phase("verify", round, nothing, () =>
        pass(
          attempt,
          `verify-${round}`,
          (step, commit) => checks.inCleanCheckout(step, "verify", commit),
          cleanFixPrompt,
        ),
      );
    }
    const isMore = await attempt.once(`more ${round}`, z.boolean(), async () => isWanted(attempt));
    if (isMore) continue;
    const offered = await offer(attempt, round, main);
    const answer = await attempt.once(`answer ${round}`, z.enum(["merged", "returned"]), async () => {
      // Emit it for each wait: in a sandbox made from a snapshot, the host may not have heard it.
      await attempt.emit(offered);
      return await answerTo(attempt, round);
    });
    if (answer === "merged") return claimEnd("completed", "merged");
  }
  throw new TaskRunOver(claimEnd("returned_too_often", `the work came back ${maxRounds} times`));
}

async function initialise({ progress, repository, checks, once, crew, tip }: Attempt): Promise<null> {
  const first = await once("prepare", commitSchema, () => repository.prepare());
  await progress.keep({ tip: first });
  await checks.install("initialise", "initialise", tip());
  await crew.overlookChanges();
  return null;
}

async function build({ order, checks, turn, tip }: Attempt): Promise<null> {
  // The failed install may be what the task is about.
  const failure = await checks.install("initialise", "initialise", tip());
  await turn("build", buildPrompt(order, failure));
  return null;
}

/** Works on the findings of the last offer, or those that came since. */
async function workOver({ progress, once, turn }: Attempt, round: number): Promise<null> {
  const { inbox, mailbox } = progress;
  const findings = await once(`findings ${round}`, z.array(findingSchema), async () => inbox.takeFindings());
  if (findings.length > 0) await turn(`build-${round}`, findingsPrompt(findings));
  else if (mailbox.isWanted("lead") || progress.phases.turn === `build-${round}`) {
    await turn(`build-${round}`, goOnWithWords);
  }
  return null;
}

const mergeSchema = z.discriminatedUnion("type", [
  z.strictObject({ type: z.literal("merged"), tip: commitSchema }),
  z.strictObject({ type: z.literal("conflicts"), paths: z.array(z.string()), text: z.string() }),
]);

/** Merges the newest main into the branch, and returns that main. */
async function integrate(attempt: Attempt, round: number, known: string): Promise<string> {
  const { progress, repository, crew, once, turn, tip } = attempt;
  const main = await once(`main ${round}`, commitSchema, async () => {
    const { mains } = progress.inbox;
    let newest = known;
    for (const { bundle, commit } of mains) {
      // Ignore a bundle that lacks the commit it promised.
      if (await repository.fetch(bundle, commit)) newest = commit;
    }
    progress.inbox.dropMains(mains.length);
    return newest;
  });
  const merge = await once(`merge ${round}`, mergeSchema, async () => await repository.merge(tip(), main));
  await crew.overlookChanges();
  if (merge.type === "merged") {
    await progress.keep({ tip: merge.tip });
    return main;
  }
  let { paths } = merge;
  for (let tries = 1; paths.length > 0; tries++) {
    if (tries > maxConflictTurns) {
      throw new TaskRunOver(claimEnd("conflict_left", `conflicts are left in ${paths.join(", ")}`));
    }
    const prompt = tries === 1 ? conflictPrompt(paths, merge.text) : unsolvedPrompt(paths);
    await turn(`conflict-${round}-${tries}`, prompt, { merged: main });
    paths = await once(`unsolved ${round}-${tries}`, z.array(z.string()), () => repository.unsolved(merge.paths));
  }
  return main;
}

/** Runs the checks and has failures fixed, as long as that changes something. */
async function pass(
  { order, once, turn, tip }: Attempt,
  name: string,
  check: (step: string, commit: string) => Promise<Failure | null>,
  prompt: (failure: Failure) => string,
): Promise<null> {
  const seen = new Set<string>();
  for (let fixes = 0; ; fixes++) {
    const step = `${name}-${fixes}`;
    const failure = await once(step, failureSchema.nullable(), () => check(step, tip()));
    if (failure === null) return null;
    const message = `${failure.errors}\n${failure.command} fails`;
    if (seen.has(failure.signature)) throw new TaskRunOver(claimEnd("looping", `${message}, again the same`));
    if (fixes === order.maxFixes) throw new TaskRunOver(claimEnd("checks_failed", message));
    seen.add(failure.signature);
    await turn(`fix-${name}-${fixes}`, prompt(failure), { model: order.fixModel });
  }
}

/** Has the agent state its view of each criterion. Others verify it. */
async function stateCriteria({ order, progress, turn, once }: Attempt): Promise<null> {
  for (const isAgain of [false, true]) {
    const open = await once(`unstated ${isAgain}`, z.array(z.string()), async () =>
      order.criteria.flatMap(({ id }) => (id in progress.phases.criteria ? [] : [id])),
    );
    if (open.length === 0) return null;
    const criteria = order.criteria.filter(({ id }) => open.includes(id));
    await turn(`intent-${isAgain ? 2 : 1}`, intentPrompt(criteria, isAgain));
  }
  return null;
}

/** With nothing to merge, offers main itself: the host then checks whether main fulfils the task. */
async function offer(attempt: Attempt, round: number, main: string): Promise<Offered> {
  const { order, repository, once, tip } = attempt;
  return await once(`offer ${round}`, offeredSchema, async () => {
    const isNew = await hasWork(attempt, main);
    const commit = isNew ? tip() : main;
    const tree = await repository.tree(commit);
    const changes = await repository.changes(main, commit);
    if (isNew) await repository.bundle(offerPath(order, round), commit, [order.base, main]);
    const tests = testsAmong(changes);
    return { type: "offered" as const, number: round, commit, tree, main, changed: changes.length, tests };
  });
}

async function answerTo({ progress, signal }: Attempt, round: number): Promise<"merged" | "returned"> {
  const { inbox, mailbox } = progress;
  const limit = AbortSignal.any([signal, AbortSignal.timeout(progress.remainingMs())]);
  for (;;) {
    const answer = inbox.answerTo(round) ?? (mailbox.isWanted("lead") ? "returned" : undefined);
    if (answer !== undefined) return answer;
    if (limit.aborted) throw new TaskRunOver(claimEnd("timeout", "no answer to the offer"));
    const next = new AbortController();
    const until = AbortSignal.any([limit, next.signal]);
    await Promise.race([inbox.changed(until), mailbox.wanted("lead", until)]);
    next.abort();
  }
}

function isWanted({ progress: { inbox, mailbox } }: Attempt): boolean {
  return inbox.hasFindings || mailbox.isWanted("lead");
}

/** A new app's first lock file comes from its install, whatever the agent does. */
async function hasWork({ repository, tip }: Attempt, main: string): Promise<boolean> {
  const changes = await repository.changes(main, tip());
  return changes.some(({ path, status }) => path !== "package-lock.json" || status !== "added");
}
