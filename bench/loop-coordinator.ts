import { flushCompileCache } from "node:module";
import process from "node:process";
import { createReports, openCoordinator } from "@slipway/server/coordinator";
import { createHost } from "@slipway/server/simulated";
import { connectSimulation } from "@slipway/server/testing/connect-simulation";
import { openDatabase, openStore } from "@slipway/store";

/** A coordinator as a process of its own: its database, the world's socket. */
const [databaseUrl = "", socketPath = ""] = process.argv.slice(2);
const store = await openStore(openDatabase({ url: databaseUrl }), Date);
const reports = createReports(store);
const host = createHost({ store, ring: reports.ring });
const world = await connectSimulation(socketPath, { host, clock: Date });
await openCoordinator({
  store,
  reports,
  name: "bench",
  slots: 100,
  clock: Date,
  warn: console.error,
  work: world,
});
// It is killed before it would do so by itself.
flushCompileCache();
