import { createHash } from "node:crypto";
import { type AttemptId, type CandidateId, candidateIdSchema, type RunId, runIdSchema } from "@slipway/contract";
import type { AttemptWork } from "@slipway/engine";

/** Derives ids from what they name, so that another process finds what this one began. */
export function runIdOf(attempt: AttemptId, respawn: number, part: number): RunId {
  return runIdSchema.parse(`run_${derived(`run ${attempt} ${respawn} ${part}`)}`);
}

export function candidateIdOf(attempt: AttemptId, respawn: number, offer: number): CandidateId {
  return candidateIdSchema.parse(`cnd_${derived(`candidate ${attempt} ${respawn} ${offer}`)}`);
}

/** The name of an attempt among the others of its build. */
export function speakerOf({ task, number }: Pick<AttemptWork, "task" | "number">): string {
  return `${task}-${number}`;
}

const alphabet = "0123456789abcdefghjkmnpqrstvwxyz";
const characters = 20;

function derived(text: string): string {
  const bytes = createHash("sha256").update(text).digest().subarray(0, characters);
  return [...bytes].map((byte) => alphabet.charAt(byte % alphabet.length)).join("");
}
