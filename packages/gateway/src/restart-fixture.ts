import { join } from "node:path";
import process from "node:process";
import type { RunId } from "@slipway/contract";
import { createGateway, openLedger, openRunLog } from "./index.ts";
import { testSettings, testTask } from "./testing/gateway.ts";

/** `node restart-fixture.ts <directory> <base address of the endpoint> <run>`: a gateway on `gateway.sock` in the directory. */
const [, , directory = "", baseUrl = "", run = ""] = process.argv;
const gateway = createGateway({
  settings: testSettings(baseUrl),
  ledger: await openLedger(join(directory, "ledger")),
  log: await openRunLog(join(directory, "runs")),
  secret: "a secret of the tests",
});
const grant = { id: run as RunId, roles: ["build"] as const, budgetMicroUsd: 100_000_000, task: testTask };
const { token } = await gateway.openRun(grant);
await gateway.listen({ path: join(directory, "gateway.sock") });
process.stdout.write(`${token}\n`);
