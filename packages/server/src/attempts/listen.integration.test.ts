import { newId } from "@slipway/contract";
import { expect, it, onTestFinished } from "vitest";
import { openSite } from "../repository/testing.ts";
import { createListener, type ListenOptions } from "./listen.ts";

it("of a run that commits without end a branch is taken in each minute", async () => {
  const site = await openSite();
  onTestFinished(() => site[Symbol.asyncDispose]());
  let now = 0;
  let taken = 0;
  const readBranch = async function* () {
    taken++;
    yield Buffer.from("no bundle");
  };
  const listen = createListener({
    ...{
      repository: site.repository,
      clock: { now: () => now },
      sandbox: { id: newId("sbx") },
      signal: AbortSignal.timeout(100_000),
    },
    kept: {
      ...{ id: newId("att"), task: "list", number: 1, respawn: 0, part: 0, tip: null, offeredBytes: 0 },
      order: {},
    },
    run: { id: newId("run"), readBranch },
    ...{ report: async () => {}, received: async () => {} },
  } as unknown as ListenOptions);
  let sequence = 0;
  const commit = async () => {
    sequence++;
    const name = sequence.toString(16).padStart(40, "0");
    await listen({ sequence, at: 0, event: { type: "committed", commit: name } });
  };
  for (let times = 0; times < 70; times++) await commit();
  expect(taken).toBe(60);
  for (let minutes = 0; minutes < 2; minutes++) {
    now += 60_000;
    for (let times = 0; times < 3; times++) await commit();
  }
  expect(taken).toBe(62);
});
