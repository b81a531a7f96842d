import process from "node:process";
import { createInterface } from "node:readline";
import type { BuildId } from "@slipway/contract";
import { openDatabase, openStore } from "@slipway/store";
import { openBridge } from "@slipway/store/bridge";
import { openCoordinator } from "../drive/coordinator.ts";
import { createReports } from "../drive/reports.ts";
import { restateDrive } from "../drive/restate/drive.ts";
import { scaledNow } from "../simulated/clock.ts";
import { createHost, type Host } from "../simulated/host.ts";
import { connectSimulation } from "../simulated/testing/connect.ts";
import type { CoordinatorSettings } from "./coordinator.ts";

/**
 * A coordinator of a simulated world, as a process of its own. Rings for the builds that its input names, a line each, and
 * ends in order with its input.
 */
const settings = JSON.parse(process.argv[2] ?? "") as CoordinatorSettings;
const { name, databaseUrl, redisUrl, restate, worldSocket, speed, leaseMs } = settings;
const warn = (message: string) => void process.stderr.write(`${name}: ${message}\n`);
const clock = { now: () => scaledNow(speed), speed: speed.factor };

await using parts = new AsyncDisposableStack();
const database = parts.use(openDatabase({ url: databaseUrl }));
const store = await openStore(database, clock, clock);
const bridge = await openBridge({ database, clock, redis: redisUrl === undefined ? undefined : { url: redisUrl } });
parts.defer(() => bridge.close());
const reports = createReports(store);
const host = createHost({ store, ring: reports.ring });

/** What sandboxes finish is told to the other sandboxes of the build. */
const telling: Host = {
  async take(notice) {
    for (const { type, key } of notice.reports ?? []) {
      if (type !== "checkpoint.made" || typeof key !== "string") continue;
      const payload = { phase: "step", text: "" };
      await bridge.publish(notice.build, { topic: "progress", key, from: "simulated", payload });
    }
    return await host.take(notice);
  },
};
const world = parts.use(await connectSimulation(worldSocket, { host: telling, clock }));
parts.use(
  await openCoordinator({
    store,
    reports,
    openDrive: restate && (await restateDrive(restate)),
    work: world,
    name,
    slots: 1000,
    clock,
    leaseMs,
    sweepMs: 500,
    warn,
  }),
);
process.stdout.write("ready\n");
for await (const line of createInterface({ input: process.stdin })) reports.ring(line as BuildId);
