import { newId, type SandboxInfo, SlipwayError } from "@slipway/contract";
import type { NewEvent } from "@slipway/engine";
import { createMemoryLedger } from "@slipway/gateway";
import { expect, it } from "vitest";
import { tellSandbox } from "./leave.ts";
import { runIdOf } from "./names.ts";

it("a sandbox's cost is reported as soon as the database is available", async () => {
  const ledger = createMemoryLedger();
  const id = newId("att");
  const run = runIdOf(id, 0, 0);
  await ledger.open(run, 1000);
  await ledger.reserve({ request: "first", run, microUsd: 500 });
  const usage = { input: 0, output: 0, cacheRead: 0, cacheWrite: 0 };
  const paid = { run, role: "build", model: "test/model", usage, microUsd: 300, estimated: false } as const;
  await ledger.settle({ request: "first", ...paid, end: "complete" });
  let busy = 1;
  const store = {
    ledger: {
      ...ledger,
      spentOn: async () => 0,
      async balance(account: typeof run) {
        if (busy-- > 0) throw new SlipwayError("database_busy", "others write");
        return await ledger.balance(account);
      },
    },
  };
  const told: NewEvent[] = [];
  const world = {
    build: { id: newId("bld"), account: "home", project: "list", mode: "new", request: "A list." } as const,
    store: store as unknown as Parameters<typeof tellSandbox>[0]["store"],
    clock: { now: () => 5 },
    closing: new AbortController().signal,
    report: async (events: readonly NewEvent[]) => void told.push(...events),
  };
  const info = { id: newId("sbx"), tools: [], labels: { respawn: "0" } } as unknown as SandboxInfo;
  await tellSandbox(world, { id, task: "list" }, info, "destroyed");
  expect(told).toMatchObject([{ data: { sandbox: { status: "destroyed", costMicroUsd: 300 } } }]);
});
