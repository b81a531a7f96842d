import {
  type AgentEvent,
  afterEnd,
  type End,
  type Finding,
  type NumberedEvent,
  printable,
  type RunId,
  type RunnerEvent,
  type SandboxId,
  type SandboxInfo,
  type SnapshotId,
  type TaskPhase,
} from "@slipway/contract";
import {
  type AgentActionRecord,
  type CheckpointRecord,
  type NewEvent,
  report,
  type SandboxRecord,
  type WorkingBuild,
} from "@slipway/engine";
import type { Taken } from "../repository/quarantine/take.ts";
import type { Kept } from "./kept.ts";
import { candidateIdOf } from "./names.ts";

/** One life of an attempt, as its reports name it. */
export type Life = Pick<Kept, "id" | "task" | "number" | "respawn" | "part">;

const lifeOf = ({ task, number, respawn }: Life) => ({ task, attempt: number, respawn });
const keyOf = ({ task, number, respawn }: Life) => `${task}:${number}:${respawn}`;

export function attemptHeard(life: Life, sandbox: SandboxId, run: RunId): NewEvent {
  return report("attempt.heard", `attempt.heard:${keyOf(life)}`, { ...lifeOf(life), sandbox, run });
}

const maxErrorCharacters = 8000;
const maxTroubleCharacters = 500;
const maxProgressCharacters = 500;

/** `budgetMicroUsd`: the build's, if money was refused. */
export function attemptEnded(life: Life, end: End, budgetMicroUsd?: number): NewEvent {
  const words = printable(end.message);
  const isFailed = afterEnd(end) === "retry";
  const message = isFailed ? words.slice(-maxErrorCharacters) : words.slice(0, maxTroubleCharacters);
  return report("attempt.ended", endKeyOf(life), { ...lifeOf(life), end: { ...end, message }, budgetMicroUsd });
}

export function endKeyOf(life: Life): string {
  return `attempt.ended:${keyOf(life)}:${life.part}`;
}

/** `sequence`: of the run's event. */
export function attemptProgress(
  life: Life,
  { sequence, at }: Pick<NumberedEvent, "sequence" | "at">,
  { phase, status, text = "" }: { readonly phase: TaskPhase; readonly status: string; readonly text?: string },
): NewEvent {
  const said = printable(text).slice(0, maxProgressCharacters);
  const key = `attempt.progress:${keyOf(life)}:${life.part}:${sequence}`;
  return report("attempt.progress", key, { ...lifeOf(life), phase, status, text: said, saidAt: at });
}

export function candidateOffered(
  life: Life,
  offer: number,
  { commit, tree }: Pick<Taken, "commit" | "tree">,
): NewEvent {
  const candidate = candidateIdOf(life.id, life.respawn, offer);
  return report("candidate.offered", `candidate:${candidate}`, { ...lifeOf(life), offer, candidate, commit, tree });
}

export function candidateRefused(life: Life, offer: number, findings: readonly Finding[]): NewEvent {
  const key = `candidate.refused:${keyOf(life)}:${offer}`;
  return report("candidate.refused", key, { ...lifeOf(life), offer, findings: [...findings] });
}

/** `task`: null if the sandbox belongs to no attempt. `info`: as last seen. */
export function sandboxChanged(
  build: WorkingBuild,
  task: string | null,
  info: SandboxInfo,
  { status, costMicroUsd }: { readonly status: "running" | "stopped" | "destroyed"; readonly costMicroUsd: number },
  nowMs: number,
): NewEvent {
  const { id, provider, image, limits, tools, snapshot, labels, reason, createdAt } = info;
  const sandbox: SandboxRecord = {
    id,
    build: build.id,
    account: build.account,
    project: build.project,
    provider,
    providerId: id,
    host: null,
    config: { image, limits, tools: [...tools], snapshot, purpose: labels["purpose"] ?? null },
    tasks: task === null ? [] : [task],
    score: null,
    costMicroUsd,
    status,
    reason: status === "running" ? reason : null,
    createdAt,
    activeAt: nowMs,
    endedAt: status === "destroyed" ? nowMs : null,
  };
  // A sandbox may stop and continue more than once.
  const key = status === "destroyed" ? `sandbox.changed:${id}:${status}` : null;
  return report("sandbox.changed", key, { sandbox });
}

export function checkpointMade(
  build: WorkingBuild,
  { id: attempt, checkpoints }: Pick<Kept, "id" | "checkpoints">,
  { sandbox, snapshot, phase }: { readonly sandbox: SandboxId; readonly snapshot: SnapshotId; readonly phase: string },
  nowMs: number,
): NewEvent {
  const checkpoint: CheckpointRecord = {
    id: `${attempt}:${checkpoints}`,
    build: build.id,
    attempt,
    sandbox,
    snapshot,
    phase,
    createdAt: nowMs,
    details: {},
  };
  return report("checkpoint.made", `checkpoint.made:${checkpoint.id}`, { checkpoint });
}

/** The result of a command of the project, for progress. */
export function commandText({ command, ok, output, durationMs }: Extract<RunnerEvent, { type: "command" }>): string {
  const time = `${(durationMs / 1000).toFixed(1)} s`;
  return ok ? `${command}, ${time}` : `${command}, ${time}: ${output.trim().slice(-400)}`;
}

const maxDetailCharacters = 2000;

type Action = Pick<AgentActionRecord, "action" | "ok" | "details">;

/** Returns what an agent did, once it is done. `inputs` holds the inputs of tool calls that have not ended. */
export function actionOf(event: AgentEvent, inputs: Map<string, string>): Action | undefined {
  switch (event.type) {
    case "tool": {
      if (event.phase === "start") {
        if (inputs.size < 1000) inputs.set(event.id, cut(event.input));
        return undefined;
      }
      const input = inputs.get(event.id) ?? "";
      inputs.delete(event.id);
      const details = { kind: event.kind, input, output: cut(event.output) };
      return { action: cut(event.name).slice(0, 200) || "tool", ok: event.ok ?? null, details };
    }
    case "file_change":
      return { action: "file_change", ok: null, details: { path: cut(event.path), change: event.action } };
    case "ended": {
      const { reason, message } = event.end;
      return { action: "ended", ok: reason === "completed", details: { reason, message: cut(message) } };
    }
    default:
      return undefined;
  }
}

function cut(text = ""): string {
  return printable(text).slice(0, maxDetailCharacters);
}
