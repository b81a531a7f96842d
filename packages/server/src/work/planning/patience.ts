import { setTimeout as delay } from "node:timers/promises";
import { type ErrorCode, SlipwayError } from "@slipway/contract";
import type { ModelRoles } from "@slipway/engine";
import { AnswerError } from "@slipway/gateway/roles";

/** Failures of others that pass by themselves. */
const passing: readonly ErrorCode[] = ["model_unreachable", "model_timeout", "model_overloaded", "model_rate_limited"];
const databaseAway: readonly ErrorCode[] = ["database_busy", "database_unavailable"];

/** Models that are asked again when what failed passes, and whose last answer is remembered. */
export interface PatientModels extends ModelRoles {
  /** As the model gave it, whether it could be used or not. */
  readonly lastAnswer: string | undefined;
}

/** `waitsMs`: before each further try of a question. */
export function patientModels(roles: ModelRoles, waitsMs: Iterable<number>): PatientModels {
  let lastAnswer: string | undefined;
  return {
    get lastAnswer() {
      return lastAnswer;
    },
    async ask(question) {
      const answer = await again(
        () => roles.ask(question),
        [...passing, ...databaseAway],
        waitsMs,
        question.signal,
      ).catch((error) => {
        if (error instanceof AnswerError) lastAnswer = error.text;
        throw error;
      });
      lastAnswer = JSON.stringify(answer.value, null, 1);
      return answer;
    },
  };
}

/** The last wait again and again. */
export function withoutEnd(waitsMs: readonly number[]): Iterable<number> {
  return {
    *[Symbol.iterator]() {
      yield* waitsMs;
      for (;;) yield waitsMs.at(-1) ?? 0;
    },
  };
}

/** What the database has to say or to keep, as soon as it can: what is at stake is paid for. */
export function whenDatabaseIsThere<T>(call: () => Promise<T>, signal: AbortSignal): Promise<T> {
  return again(call, databaseAway, databaseWaitsMs(), signal);
}

async function again<T>(
  call: () => Promise<T>,
  codes: readonly ErrorCode[],
  waitsMs: Iterable<number>,
  signal: AbortSignal | undefined,
): Promise<T> {
  const waits = waitsMs[Symbol.iterator]();
  for (;;) {
    try {
      return await call();
    } catch (error) {
      if (!(error instanceof SlipwayError && codes.includes(error.code))) throw error;
      const wait = waits.next();
      if (wait.done) throw error;
      await delay(wait.value, undefined, { ...(signal && { signal }) });
    }
  }
}

function* databaseWaitsMs(): Generator<number> {
  for (let ms = 100; ; ms = Math.min(2 * ms, 30_000)) yield ms;
}
