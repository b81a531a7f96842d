import { findRunner, startTaskRun } from "@slipway/agent-host";
import type { End } from "@slipway/contract";
import { projectPath, type Sandbox } from "@slipway/sandbox";
import { patiently } from "../planning/patience.ts";
import { type Checkpointed, createCheckpoints } from "./checkpoints.ts";
import { keepClaims } from "./claims.ts";
import type { Kept } from "./kept.ts";
import { snapshotName, tellSandbox } from "./leave.ts";
import { createListener } from "./listen.ts";
import { runIdOf, speakerOf } from "./names.ts";
import { endKeyOf } from "./reports.ts";
import { Running } from "./running.ts";
import type { AttemptSurroundings } from "./surroundings.ts";

const hourMs = 3_600_000;
/** How long a run may work and wait. */
const totalMs = 8 * hourMs;

/** Whether a run that was refused money may ask again: the budget was raised, or the build knows and continues anyway. */
export async function mayAskAgain(
  { build, store }: Pick<AttemptSurroundings, "build" | "store">,
  kept: Kept,
): Promise<boolean> {
  const { budgetMicroUsd } = await store.ledger.balance(build.id);
  if (budgetMicroUsd > (kept.refusedMicroUsd ?? 0)) return true;
  const told = await store.events.find(build.id, endKeyOf(kept));
  return told !== undefined && told.sequence <= (await store.builds.get(build.id)).appliedThrough;
}

export interface RunHooks {
  /** Aborts when the attempt is let go of. */
  readonly signal: AbortSignal;
  /** Called after each snapshot of the working sandbox. */
  readonly checkpointed: Checkpointed;
}

/** Starts the run for the attempt's current part in the sandbox, or finds it. */
export async function startRun(
  world: AttemptSurroundings,
  kept: Kept,
  sandbox: Sandbox,
  { signal, checkpointed }: RunHooks,
): Promise<Running> {
  const { build, store, gateway, agent, workers, checkpointMs, warn } = world;
  const { base } = kept.order;
  const repository = await world.repository();
  const id = runIdOf(kept.id, kept.respawn, kept.part);
  // Read before any of it is spent, so that a raise meanwhile counts.
  const { budgetMicroUsd } = await store.ledger.balance(build.id);
  await openRunAccount(world, kept, budgetMicroUsd);
  const exec = await findRunner(sandbox);
  const start = () =>
    startTaskRun({
      sandbox,
      gateway,
      id,
      budgetMicroUsd,
      order: kept.order,
      ...(exec !== undefined && { exec }),
      env: { SLIPWAY_RUN_NAME: kept.id },
      task: { agent, workers, workdir: projectPath, limits: { totalMs } },
      main: repository.bundle({ tip: base, signal }),
    });
  const run = await patiently(start, signal);
  const checkpoints = createCheckpoints({
    sandbox,
    name: snapshotName(build, kept.id),
    everyMs: checkpointMs,
    async made(snapshot, phase) {
      await checkpointed({ sandbox: sandbox.id, snapshot, phase });
      // The end of a sandbox that died meanwhile is reported elsewhere.
      const info = await sandbox.info().catch(() => undefined);
      if (info !== undefined) await tellSandbox(world, kept, info, "running");
    },
    warn: (error) => signal.aborted || warn(`${kept.id} has no new checkpoint: ${error.message}`),
  });
  return new Running({ run, sandbox, checkpoints, repository, base, budgetMicroUsd, released: signal });
}

/**
 * Opens the run's account before the gateway does, with the task and attempt that spend. The build's account covers all. A part
 * of an attempt has one even if its sandbox could not be paid for.
 */
export async function openRunAccount(
  { build, store, agent }: Pick<AttemptSurroundings, "build" | "store" | "agent">,
  { id: attempt, task, respawn, part }: Kept,
  budgetMicroUsd: number,
): Promise<void> {
  await store.ledger.open({
    id: runIdOf(attempt, respawn, part),
    build: build.id,
    task,
    attempt,
    agent,
    budgetMicroUsd,
  });
}

/** Takes in the events of a run that were not heard before, and returns its end. `keep` stores the progress. */
export async function followRun(
  world: AttemptSurroundings,
  kept: Kept,
  running: Running,
  keep: (change: Partial<Kept>) => Promise<unknown>,
): Promise<End> {
  const { run, sandbox, checkpoints, repository } = running.parts;
  const signal = running.listening;
  keepClaims(world, speakerOf(kept), signal);
  await using listener = createListener({
    ...world,
    kept,
    sandbox,
    run,
    repository,
    signal,
    checkpoint: (phase) => checkpoints.wish(phase),
    received: async (change) => void (await keep(change)),
    heard: async (sequence) => void (await keep({ heard: sequence })),
  });
  try {
    for await (const event of run.events({ after: kept.heard, signal })) {
      checkpoints.heard();
      await listener.take(event);
    }
    return await run.ended;
  } finally {
    running.ended();
  }
}
