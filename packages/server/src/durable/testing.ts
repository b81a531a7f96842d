import { spawn } from "node:child_process";
import { mkdtempSync, renameSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import type { BuildId } from "@slipway/contract";
import type { LeaseHolder } from "@slipway/engine";
import type { DurableTick, DurableTurn } from "./loop.ts";

export function temporaryDirectory(): { readonly path: string } & Disposable {
  const path = mkdtempSync(join(tmpdir(), "slipway-restate-"));
  return { path, [Symbol.dispose]: () => rmSync(path, { recursive: true, force: true, maxRetries: 5 }) };
}

/** In one step: nobody starts with a part of what is there. It goes with the directory that it is in. */
export function loseData(directory: string): void {
  const lost = mkdtempSync(join(directory, "lost-"));
  renameSync(join(directory, "data"), join(lost, "data"));
}

export interface TickCall extends LeaseHolder {
  readonly build: BuildId;
  readonly bell: string;
}

export const anHour: DurableTurn = { over: false, waitMs: 3_600_000 };
export const over: DurableTurn = { over: true };

/** A tick that answers what the test says, and tells the test of each call. */
export function scriptedTick(answer: (call: TickCall, count: number) => DurableTurn | Promise<DurableTurn>) {
  const calls: TickCall[] = [];
  let heard = Promise.withResolvers<void>();
  const tick: DurableTick = async (build, by, bell) => {
    const call = { build, ...by, bell };
    const count = calls.push(call);
    heard.resolve();
    heard = Promise.withResolvers();
    return await answer(call, count);
  };
  /** The call of that number, from 1. */
  const called = async (count: number): Promise<TickCall> => {
    while (calls.length < count) await heard.promise;
    return calls[count - 1] as TickCall;
  };
  return { tick, calls, called };
}

/** A process of fixture.ts: its lines as they come. */
export function startFixture(...args: readonly string[]) {
  const path = fileURLToPath(new URL("fixture.ts", import.meta.url));
  const child = spawn(process.execPath, [path, ...args], { stdio: ["ignore", "pipe", "inherit"] });
  const lines = createInterface(child.stdout)[Symbol.asyncIterator]();
  return {
    async line<T>(): Promise<T> {
      const { value, done } = await lines.next();
      if (done) throw new Error("the fixture has ended");
      return JSON.parse(value);
    },
    kill: () => child.kill("SIGKILL"),
    [Symbol.dispose]: () => void child.kill("SIGKILL"),
  };
}
