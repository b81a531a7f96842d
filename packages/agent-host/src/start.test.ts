import { once } from "node:events";
import { newId } from "@slipway/contract";
import { expect, it } from "vitest";
import { type StartRun, startRun } from "./start.ts";

it("followers of events learn when a run's end fails", async () => {
  const defect = new TypeError("a defect");
  const never = new Promise<never>(() => {});
  const open = {
    task: { limits: { totalMs: 60_000 } },
    ended: never,
    gaveUp: Promise.resolve({ end: "failed", code: "model_overloaded", at: 0 }),
    fail: () => Promise.reject(defect),
    // biome-ignore lint/correctness/useYield: nothing is told.
    async *events({ signal }: { readonly signal: AbortSignal }) {
      if (!signal.aborted) await once(signal, "abort");
    },
    [Symbol.asyncDispose]: async () => {},
  };
  const channel = { async *connections() {}, [Symbol.asyncDispose]: async () => {} };
  const exec = { wait: () => never, kill: async () => {} };
  const parts = {
    gateway: { openRun: async () => open, serve() {} },
    sandbox: { openChannel: async () => channel, exec: async () => exec },
    grant: { id: newId("run") },
  };
  await using run = await startRun(parts as unknown as StartRun);
  expect(await Array.fromAsync(run.events())).toEqual([]);
  await expect(run.ended).rejects.toBe(defect);
});
