import { newId } from "@slipway/contract";
import type { BuildRecord, NewEvent, SandboxRecord } from "@slipway/engine";
import { createFakeProvider } from "@slipway/sandbox/testing/provider";
import { expect, test, vi } from "vitest";
import { recordSandboxes } from "./recorded-sandboxes.ts";

const build = newId("bld");
const labels = { build, purpose: "gate" };

function open() {
  const told: [string, string, unknown][] = [];
  const recorded = recordSandboxes(createFakeProvider(), {
    store: {
      builds: { get: async () => ({ id: build, account: "ada", project: "shop" }) as BuildRecord } as never,
      ledger: { spentOn: async () => 0 },
    },
    async tell(_, { data }: NewEvent) {
      const { id, status, tasks, config } = (data as { sandbox: SandboxRecord }).sandbox;
      expect(tasks).toEqual([]);
      told.push([id, status, (config as { purpose: unknown }).purpose]);
    },
    clock: { now: () => 1 },
  });
  return { recorded, told };
}

test("a sandbox that is not an attempt's is in its build's records from its create to its end", async () => {
  const { recorded, told } = open();
  const kept = await recorded.create({ labels });
  const { id } = await (async () => {
    await using sandbox = await recorded.create({ labels });
    return sandbox;
  })();
  // Whoever finds it later ends it.
  await (await recorded.get(kept.id)).destroy();
  await vi.waitFor(() => expect(told).toHaveLength(4));
  for (const sandbox of [id, kept.id]) {
    expect(told.filter(([of]) => of === sandbox)).toEqual([
      [sandbox, "running", "gate"],
      [sandbox, "destroyed", "gate"],
    ]);
  }
});

test("one of no build is in no records", async () => {
  const { recorded, told } = open();
  await (await recorded.create({})).destroy();
  expect(await recorded.list()).toEqual([]);
  expect(told).toEqual([]);
});
