import { type BuildId, computeCost } from "@slipway/contract";
import { expect, test, vi } from "vitest";
import { localUser } from "../faces/principal.ts";
import { computeTruth, testPrice, testRate } from "../testing/compute-truth.ts";
import { scriptedApp } from "../testing/scripted-app.ts";
import { openWorld } from "../testing/world.ts";

async function openPaid() {
  const world = await openWorld({
    sandboxes: "local",
    server: { program: scriptedApp([{ id: "cart" }]), price: testPrice },
  });
  const ran = () => computeTruth(world.provider);
  const computeOf = async (build: BuildId) =>
    (await world.server.face.costs(localUser, build)).by.provider.find(({ of }) => of === "local");
  const endPreview = async (build: BuildId) => await world.server.face.closePreview(localUser, build);
  return { ...world, ran, computeOf, endPreview, [Symbol.asyncDispose]: () => world[Symbol.asyncDispose]() };
}

test("every sandbox of a build is paid for by what it ran, for its task and its gate", async () => {
  await using world = await openPaid();
  const build = await world.start({ settings: { budgetMicroUsd: 1_000_000_000 } });
  expect((await world.ended(build)).status, world.warnings.join("\n")).toBe("succeeded");
  await world.endPreview(build);
  await vi.waitFor(async () => expect(await world.provider.list()).toEqual([]));
  await vi.waitFor(async () => {
    const paid = await world.computeOf(build);
    expect(paid).toMatchObject({ reservedMicroUsd: 0, spentMicroUsd: await world.ran() });
    expect(paid?.spentMicroUsd).toBeGreaterThan(0);
  });
  const { by } = await world.server.face.costs(localUser, build);
  const spenders = (dimension: "task" | "gate") =>
    by[dimension].filter((one) => one.spentMicroUsd > 0).map(({ of }) => of);
  expect(spenders("gate")).toEqual(expect.arrayContaining(["build", "tests", "intent", "main-test"]));
  expect(spenders("task")).toEqual(expect.arrayContaining(["base", "cart"]));
}, 600_000);

test("a build without money for sandboxes pauses, and ends well when there is more", async () => {
  await using world = await openPaid();
  // Enough for two at a time, which reserve ten minutes each; what they use is much less.
  const build = await world.start({ settings: { budgetMicroUsd: computeCost(testRate, 15 * 60_000) } });
  const paused = await world.ended(build);
  expect([paused.status, paused.reason], world.warnings.join("\n")).toEqual(["paused", "budget"]);
  expect(paused.money.spentMicroUsd).toBeLessThanOrEqual(paused.money.budgetMicroUsd);
  await world.server.face.setBudget(localUser, build, { budgetMicroUsd: 1_000_000_000, resume: true });
  await vi.waitFor(async () => expect((await world.server.face.get(localUser, build)).status).toBe("succeeded"), {
    timeout: 400_000,
    interval: 500,
  });
}, 600_000);
