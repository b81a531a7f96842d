import type { BuildId } from "@slipway/contract";
import type { LeaseHolder } from "@slipway/engine";
import type { DriveTurn, TakeTurn } from "../drive.ts";

export interface TurnCall extends LeaseHolder {
  readonly build: BuildId;
  readonly bell: string;
}

export const anHour: DriveTurn = { over: false, waitMs: 3_600_000 };
export const over: DriveTurn = { over: true };

/** Turns that answer what the test says, and tell the test of each call. */
export function scriptedTurns(answer: (call: TurnCall, count: number) => DriveTurn | Promise<DriveTurn>) {
  const calls: TurnCall[] = [];
  let heard = Promise.withResolvers<void>();
  const takeTurn: TakeTurn = async (build, by, bell) => {
    const call = { build, ...by, bell };
    const count = calls.push(call);
    heard.resolve();
    heard = Promise.withResolvers();
    return await answer(call, count);
  };
  /** The call of that number, from 1. */
  const called = async (count: number): Promise<TurnCall> => {
    while (calls.length < count) await heard.promise;
    return calls[count - 1] as TurnCall;
  };
  return { takeTurn, calls, called };
}
