import type { AttemptId, End, SandboxId } from "@slipway/contract";
import { type CheckpointRecord, type NewEvent, report, type SandboxRecord, type WorkingBuild } from "@slipway/engine";
import type { AttemptName, Fate } from "./fate.ts";

export function attemptHeard({ task, number }: AttemptName, respawn: number, sandbox: SandboxId): NewEvent {
  return report("attempt.heard", `attempt.heard:${task}:${number}:${respawn}`, {
    task,
    attempt: number,
    respawn,
    sandbox,
  });
}

export function attemptOffered({ task, number }: AttemptName, respawn: number): NewEvent {
  return report("attempt.offered", `attempt.offered:${task}:${number}:${respawn}`, { task, attempt: number, respawn });
}

interface Ended extends Partial<Pick<Fate, "fix">> {
  readonly end: End;
  readonly budgetMicroUsd?: number;
}

/** `occasion` distinguishes ends that the same sandbox may report more than once. */
export function attemptEnded(name: AttemptName, respawn: number, ended: Ended, occasion = ""): NewEvent {
  const { task, number } = name;
  const key = `attempt.ended:${task}:${number}:${respawn}${occasion}`;
  return report("attempt.ended", key, { task, attempt: number, respawn, ...ended });
}

export interface SandboxLife {
  readonly id: SandboxId;
  readonly build: WorkingBuild;
  readonly task: string;
  readonly createdAt: number;
  readonly costMicroUsd: number;
}

export function sandboxChanged(life: SandboxLife, status: "running" | "destroyed", nowMs: number): NewEvent {
  const { id, build, task, createdAt, costMicroUsd } = life;
  const sandbox: SandboxRecord = {
    id,
    build: build.id,
    account: build.account,
    project: build.project,
    provider: "simulated",
    providerId: null,
    host: null,
    config: {},
    status,
    reason: null,
    tasks: [task],
    score: null,
    costMicroUsd,
    createdAt,
    activeAt: nowMs,
    endedAt: status === "destroyed" ? nowMs : null,
  };
  return report("sandbox.changed", `sandbox.changed:${id}:${status}`, { sandbox });
}

export function checkpointMade(
  { id: sandbox, build }: SandboxLife,
  { attempt, step, nowMs }: { readonly attempt: AttemptId; readonly step: number; readonly nowMs: number },
): NewEvent {
  const id = `${attempt}:${step}`;
  const checkpoint: CheckpointRecord = {
    id,
    build: build.id,
    attempt,
    sandbox,
    snapshot: null,
    phase: `step-${step}`,
    createdAt: nowMs,
    details: { step },
  };
  return report("checkpoint.made", `checkpoint.made:${id}`, { checkpoint });
}
