import type { BuildId } from "@slipway/contract";
import { expect, test, vi } from "vitest";
import { shown, soon, tell, treeWithoutFaults, watchBuild } from "./demo-crashes.ts";
import { examineComputeMoney } from "./examine-compute.ts";
import { examineDemoBuild, examineNothingLeft, examineRest } from "./examine-demo.ts";
import type { DemoFault } from "./world/demo.ts";
import { expectNothingAtModal } from "./world/stand-in.ts";
import { openWorld } from "./world.ts";

/** Of the network, for each call and for each way through a tunnel. */
const latency = { callMs: 50, tunnelMs: 25 };
const request = "A shopping list that a household shares";
const settings = { slots: 4, budgetMicroUsd: 1_000_000_000 };
/** About as many as the build has before its end. */
const usualEvents = 500;

async function openFarDemo() {
  const world = await openWorld({ standIn: {}, demo: {}, store: {} });
  world.standIn.faults.setLatency(latency);
  return world;
}
type FarDemo = Awaited<ReturnType<typeof openFarDemo>>;

/** What goes wrong on the way to Modal, one after the other, over the whole build. */
const troubles: readonly ((standIn: FarDemo["standIn"]) => void)[] = [
  ({ faults }) => faults.refuse("*", { code: "RESOURCE_EXHAUSTED", times: 5, retryAfterSeconds: 1 }),
  ({ faults }) => faults.cutTunnels(),
  ({ faults }) => faults.cut("SandboxCreateV2", "after"),
  ({ faults }) => faults.refuse("SandboxCreateV2", { code: "UNAVAILABLE", times: 3 }),
  ({ faults }) => faults.cutNow(),
  ({ faults }) => faults.cut("SandboxTerminateV2", "after"),
  ({ faults }) => faults.cutTunnels(),
];

/** The build ends as on this machine, whatever goes wrong and whatever is killed, and pays to the micro-USD what ran. */
export function testDemoOnModal(name: string, kills: readonly DemoFault[]): void {
  test(`the demo's build on Modal ends as on this machine, ${name}`, async () => {
    const tree = await treeWithoutFaults();
    await using world = await openFarDemo();
    const { client, store, model, standIn } = world;
    const { id } = await client.builds.start({ request, settings });
    const watch = watchBuild(world, id);
    const steps = [
      ...troubles.map((trouble) => async () => trouble(standIn)),
      ...kills.map((fault) => async () => console.log(await watch.strike(fault, 0.5))),
    ];
    for (const [index, step] of steps.entries()) {
      await watch.until(((index + 1) / (steps.length + 1)) * usualEvents);
      await step();
    }
    await watch.until(Number.POSITIVE_INFINITY);
    const { status, reason } = await store.builds.get(id);
    expect(status, `${reason}: ${await tell(world, id)}`).toBe("succeeded");
    await vi.waitFor(async () => {
      const { preview } = await client.builds.get(id);
      expect(await (await fetch(preview ?? "")).text()).toContain("<html");
    }, shown);
    await vi.waitFor(() => examineRest(world, id), soon);
    await client.builds.closePreview(id);
    await expectNothingAtModal(standIn);
    const serverKills = kills.filter((fault) => fault === "server").length;
    await vi.waitFor(() => examineComputeMoney({ ledger: store.ledger, standIn }, id), soon);
    await examineDemoBuild(world, { id, tree, serverKills, requests: model.requests });
    await world.end();
    await vi.waitFor(() => examineNothingLeft(world), soon);
  }, 3_600_000);
}

export function testCancelOnModal(): void {
  test("a build that is cancelled leaves nothing at Modal", async () => {
    await using world = await openFarDemo();
    const { client, standIn } = world;
    const { id } = await client.builds.start({ request, settings });
    await watchBuild(world, id).until(usualEvents / 4);
    expect(standIn.running().length).toBeGreaterThan(0);
    await client.builds.cancel(id);
    await ended(world, id);
    await expectNothingAtModal(standIn);
    await vi.waitFor(() => examineComputeMoney({ ledger: world.store.ledger, standIn }, id), soon);
  }, 1_800_000);
}

async function ended({ store }: Pick<FarDemo, "store">, id: BuildId): Promise<void> {
  await vi.waitFor(async () => expect((await store.builds.get(id)).endedAt).not.toBeNull(), {
    timeout: 300_000,
    interval: 500,
  });
}
