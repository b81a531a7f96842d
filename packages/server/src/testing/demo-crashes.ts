import { execFile } from "node:child_process";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { setTimeout as delay } from "node:timers/promises";
import { promisify } from "node:util";
import type { BuildId } from "@slipway/contract";
import { expect, test, vi } from "vitest";
import { playAll } from "../../../../examples/demo-build/testing.ts";
import { between, draw } from "../simulated/chance.ts";
import { computeTruth, testPrice } from "./compute-truth.ts";
import { type DemoWorld, examineDemoBuild, examineNothingLeft, examineProcesses, examineRest } from "./examine-demo.ts";
import { tellStuck } from "./tell-stuck.ts";
import { type DemoFault, demoFaults } from "./world/demo.ts";
import { openWorld } from "./world.ts";

/** By which dice processes are killed. */
const seed = Number(process.env["SLIPWAY_SEED"]);

/** More at the same build would use up how often its attempts may be respawned. */
const crashesPerBuild = 25;
/** That a build of the demo has without faults, about. */
const usualEvents = 500;
/** No recovery takes so long, nor does any command of the app. */
const stuckMs = 400_000;
/** What is removed once a build has ended is gone by then. */
export const soon = { timeout: 60_000, interval: 500 };
/** A preview whose sandbox was killed last is brought up when it is looked at, after half a minute, and once more if that fails. */
export const shown = { timeout: 300_000, interval: 500 };

/** So many processes are killed in all. */
export function testDemoCrashes(crashes: number): void {
  test("the demo's build ends as without faults, whatever is killed", async () => {
    console.log(`SLIPWAY_SEED=${seed}`);
    const tree = await treeWithoutFaults();
    await using world = await openWorld({ demo: {}, store: {} });
    let struck = 0;
    do struck += await crashBuild(world, tree, { before: struck, left: crashes - struck });
    while (struck < crashes);
    await world.end();
    await vi.waitFor(() => examineNothingLeft(world), soon);
  }, 7_200_000);
}

/** Sandboxes cost money, and each of these is killed once, the server more often than the others. */
export function testPaidCrashes(faults: readonly DemoFault[]): void {
  test("the ledger equals what ran, whatever is killed", async () => {
    console.log(`SLIPWAY_SEED=${seed}`);
    await using world = await openWorld({ demo: { compute: { local: testPrice } }, store: {} });
    const { client, store, provider } = world;
    const { id } = await client.builds.start({
      request: "A shopping list that a household shares",
      settings: { slots: 2, budgetMicroUsd: 1_000_000_000 },
    });
    const watch = watchBuild(world, id);
    for (const [index, fault] of faults.entries()) {
      await watch.until(((index + 1) / (faults.length + 1)) * usualEvents);
      console.log(await watch.strike(fault, draw(seed, "target", index)));
    }
    await watch.until(Number.POSITIVE_INFINITY);
    expect((await store.builds.get(id)).status, await tell(world, id)).toBe("succeeded");
    await client.builds.closePreview(id);
    await vi.waitFor(async () => {
      const costs = await client.builds.costs(id);
      const spent = costs.by.provider.find(({ of }) => of === "local");
      expect(spent).toMatchObject({ reservedMicroUsd: 0, spentMicroUsd: await computeTruth(provider) });
    }, soon);
    await world.end();
  }, 1_800_000);
}

/** As git sees what the demo's agents make when nothing goes wrong. */
export async function treeWithoutFaults(): Promise<string> {
  const run = promisify(execFile);
  const directory = await mkdtemp(join(tmpdir(), "slipway-demo-tree-"));
  try {
    await playAll(directory);
    const git = async (...argv: string[]) => (await run("git", ["-C", directory, ...argv])).stdout.trim();
    await git("init", "--quiet");
    await git("add", "--all");
    return await git("write-tree");
  } finally {
    await rm(directory, { recursive: true, force: true });
  }
}

/** One build, and as many crashes as it takes. Answers how many there were. */
async function crashBuild(
  world: DemoWorld,
  tree: string,
  { before, left }: { readonly before: number; readonly left: number },
): Promise<number> {
  const { store, client, model } = world;
  const asked = model.requests.length;
  const { id } = await client.builds.start({
    request: "A shopping list that a household shares",
    settings: { slots: 4 },
  });
  const watch = watchBuild(world, id);
  const planned = Math.min(left, crashesPerBuild);
  const struck: DemoFault[] = [];
  for (let index = 0; index < planned; index++) {
    const number = before + index + 1;
    await watch.until(((index + draw(seed, "event", number)) / planned) * usualEvents);
    await delay(between([0, 1000], draw(seed, "moment", number)));
    const fault = faultOf(number);
    const hit = await watch.strike(fault, draw(seed, "target", number));
    if (hit === undefined) break;
    console.log(`${id} ${number}: ${hit}`);
    struck.push(fault);
  }
  await watch.until(Number.POSITIVE_INFINITY);
  const { status, reason } = await store.builds.get(id);
  expect(status, `${reason}: ${await tell(world, id)}`).toBe("succeeded");
  await vi.waitFor(async () => {
    const { preview } = await client.builds.get(id);
    expect(await (await fetch(preview ?? "")).text()).toContain("<html");
  }, shown);
  await vi.waitFor(() => examineRest(world, id), soon);
  const serverKills = struck.filter((fault) => fault === "server").length;
  await examineDemoBuild(world, { id, tree, serverKills, requests: model.requests.slice(asked) });
  await vi.waitFor(() => examineProcesses(world), soon);
  return struck.length;
}

/** Each kind once, then each of them again. */
function faultOf(number: number): DemoFault {
  const cycle = Math.floor((number - 1) / demoFaults.length);
  const order = demoFaults.toSorted(
    (one, other) => draw(seed, "order", cycle, one) - draw(seed, "order", cycle, other),
  );
  return order[(number - 1) % demoFaults.length] ?? "server";
}

export function watchBuild(world: DemoWorld, id: BuildId) {
  const { store } = world;
  let seen = 0;
  let movedAt = Date.now();
  /** Whether the build goes on. */
  const look = async (): Promise<boolean> => {
    const { lastEvent, endedAt } = await store.builds.get(id);
    if (lastEvent > seen) movedAt = Date.now();
    seen = lastEvent;
    if (Date.now() - movedAt > stuckMs) throw new Error(`the build does not move: ${await tell(world, id)}`);
    return endedAt === null || (await store.leases.find(id)).holder !== null;
  };
  return {
    /** Until so much has happened, or the build is over. */
    async until(events: number): Promise<void> {
      while ((await look()) && seen < events) await delay(100);
    },
    /** Undefined: the build was over before there was something of the kind. */
    async strike(fault: DemoFault, chance: number): Promise<string | undefined> {
      while ((await look()) && (await store.builds.get(id)).endedAt === null) {
        const hit = await world.strike(fault, chance);
        if (hit !== undefined) return hit;
        await delay(50);
      }
      return undefined;
    },
  };
}

export async function tell(world: DemoWorld, id: BuildId): Promise<string> {
  return `${await tellStuck(world, id)}\nthe server says: ${world.log()}`;
}
