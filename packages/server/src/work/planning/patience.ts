import { doubling, type ErrorCode, type RetryOptions, retry, SlipwayError } from "@slipway/contract";
import type { Dummies, ModelRoles } from "@slipway/engine";
import { AnswerError } from "@slipway/gateway/roles";
import { isFullDisk } from "../full-disk.ts";
import { isLasting } from "../lasting.ts";

/** Failures of models that pass by themselves. */
const passing: readonly ErrorCode[] = ["model_unreachable", "model_timeout", "model_overloaded", "model_rate_limited"];
const databaseAway: readonly ErrorCode[] = ["database_busy", "database_unavailable"];

/** Models that retry transient failures and remember the last answer. */
export interface PatientModels extends ModelRoles {
  /** As the model gave it, usable or not. */
  readonly lastAnswer: string | undefined;
}

/** `waitsMs`: the wait before each retry of a question. */
export function patientModels(roles: ModelRoles, waitsMs: Iterable<number>): PatientModels {
  let lastAnswer: string | undefined;
  return {
    get lastAnswer() {
      return lastAnswer;
    },
    async ask(question) {
      const mayPass = isOneOf([...passing, ...databaseAway]);
      const { signal } = question;
      const answer = await retry(() => roles.ask(question), { waitsMs, mayPass, signal }).catch((error) => {
        if (error instanceof AnswerError) lastAnswer = error.text;
        throw error;
      });
      lastAnswer = JSON.stringify(answer.value, null, 1);
      return answer;
    },
  };
}

/** Dummies that make all checks again after trouble of the sandboxes. */
export function patientDummies(dummies: Dummies, waitsMs: Iterable<number>): Dummies {
  return {
    passing: (surface, checks, { signal }) =>
      checkPatiently(() => dummies.passing(surface, checks, { signal }), { waitsMs, signal }),
  };
}

/** Checks again after trouble of the sandboxes, which is neither a pass nor a failure of a check. */
export function checkPatiently<T>(check: () => Promise<T>, options: Omit<RetryOptions, "mayPass">): Promise<T> {
  const mayPass = (error: unknown) => isFullDisk(error) || (error instanceof SlipwayError && !isLasting(error));
  return retry(check, { ...options, mayPass });
}

/** Repeats the last wait for ever. */
export function withoutEnd(waitsMs: readonly number[]): Iterable<number> {
  return {
    *[Symbol.iterator]() {
      yield* waitsMs;
      for (;;) yield waitsMs.at(-1) ?? 0;
    },
  };
}

/** Retries while the database is away, because the work at stake is paid for. */
export function whenDatabaseIsThere<T>(call: () => Promise<T>, signal: AbortSignal): Promise<T> {
  return retry(call, { waitsMs: doubling(100, 30_000), mayPass: isOneOf(databaseAway), signal });
}

const patientWaitsMs = [500, 2000, 10_000, 30_000];

/** Retries transient failures. Once the signal aborts, fails with its reason. */
export async function patiently<T>(work: () => Promise<T>, signal: AbortSignal, waitsMs = patientWaitsMs): Promise<T> {
  return await retry(work, { waitsMs, signal }).catch((error) => {
    signal.throwIfAborted();
    throw error;
  });
}

function isOneOf(codes: readonly ErrorCode[]): (error: unknown) => boolean {
  return (error) => error instanceof SlipwayError && codes.includes(error.code);
}
