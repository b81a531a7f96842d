import { newId, type RunnerEvent } from "@slipway/contract";
import { expect, it, onTestFinished } from "vitest";
import { openWorld } from "../../testing/world.ts";
import { createListener, type ListenOptions } from "./listen.ts";

it("a run's events are reported while its branch is taken in and progress is stored", async () => {
  const begun = Promise.withResolvers<void>();
  const opened = Promise.withResolvers<void>();
  const told: unknown[] = [];
  const site = await openListener({
    async *readBranch() {
      begun.resolve();
      await opened.promise;
      yield Buffer.from("no bundle");
    },
    report: async (events) => void told.push(...events.map(({ data }) => data?.["status"])),
    heard: () => opened.promise,
  });
  await site.say({ type: "committed", commit: "a".repeat(40) });
  await begun.promise;
  await site.say({ type: "command", phase: "test", command: "test", ok: true, output: "", durationMs: 1 });
  expect(told).toEqual([undefined, "committed", "passed"]);
  opened.resolve();
});

it("a failure beside the events rejects at the next event", async () => {
  const site = await openListener({ heard: () => Promise.reject(new Error("the disk is broken")) });
  const said = { type: "command", phase: "test", command: "test", ok: true, output: "", durationMs: 1 } as const;
  await site.say(said);
  await expect(site.say(said)).rejects.toThrow("the disk is broken");
});

it("the branch of a run that commits constantly is taken once a minute", async () => {
  let now = 0;
  let taken = 0;
  const site = await openListener({
    clock: { now: () => now },
    async *readBranch() {
      taken++;
      yield Buffer.from("no bundle");
    },
  });
  let commits = 0;
  const commit = async () => {
    await site.say({ type: "committed", commit: (++commits).toString(16).padStart(40, "0") });
    await site.settled();
  };
  for (let times = 0; times < 70; times++) await commit();
  expect(taken).toBe(60);
  for (let minutes = 0; minutes < 2; minutes++) {
    now += 60_000;
    for (let times = 0; times < 3; times++) await commit();
  }
  expect(taken).toBe(62);
});

/** A listener to a run that has said nothing yet. */
async function openListener({ readBranch, ...options }: Partial<ListenOptions> & Partial<ListenOptions["run"]>) {
  const site = await openWorld({ repository: "small" });
  const listener = createListener({
    repository: site.repository,
    sandbox: { id: newId("sbx") },
    signal: AbortSignal.timeout(100_000),
    kept: { id: newId("att"), task: "list", number: 1, respawn: 0, part: 0, tip: null, offeredBytes: 0, order: {} },
    run: { id: newId("run"), readBranch },
    report: async () => {},
    received: async () => {},
    heard: async () => {},
    clock: { now: () => 0 },
    ...options,
  } as unknown as ListenOptions);
  onTestFinished(async () => {
    await listener[Symbol.asyncDispose]();
    await site[Symbol.asyncDispose]();
  });
  let sequence = 0;
  return {
    say: (event: RunnerEvent) => listener.take({ sequence: ++sequence, at: 0, event }),
    settled: () => listener[Symbol.asyncDispose](),
  };
}
