import { flushCompileCache } from "node:module";
import process from "node:process";
import type { BuildId } from "@slipway/contract";
import { type Coordinator, openCoordinator } from "@slipway/server/coordinator";
import { connectSimulation, createHost } from "@slipway/server/simulated";
import { openDatabase, openStore } from "@slipway/store";

/** A coordinator as a process of its own: its database, the world's socket. */
const [databaseUrl = "", socketPath = ""] = process.argv.slice(2);
const store = await openStore(openDatabase({ url: databaseUrl }), Date);
let coordinator: Coordinator | undefined;
const host = createHost({ store, ring: (build: BuildId) => coordinator?.ring(build) });
const world = await connectSimulation(socketPath, { host, clock: Date });
coordinator = await openCoordinator({
  store,
  name: "bench",
  slots: 100,
  clock: Date,
  warn: console.error,
  work: () => world,
});
// It is killed before it would do so by itself.
flushCompileCache();
