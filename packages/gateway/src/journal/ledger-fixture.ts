import process from "node:process";
import { type RunId, SlipwayError } from "@slipway/contract";
import { openLedger } from "./ledger.ts";

/** `node ledger-fixture.ts <directory> <run>`: spends 10 again and again, and says so each time, until it is killed. */
const [, , directory = "", run = ""] = process.argv;
const owner = run as RunId;
const ledger = await openLedger(directory);
await ledger.open(owner, Number.MAX_SAFE_INTEGER);
const usage = { input: 1, output: 1, cacheRead: 0, cacheWrite: 0 };
for (let i = 0; ; i++) {
  const request = `request-${i}`;
  const reserved = await ledger.reserve({ request, run: owner, microUsd: 10 });
  if (!reserved || !(await ledger.extend(request, 5))) throw new SlipwayError("budget_exhausted", "it is not");
  const bill = { usage, microUsd: 10, estimated: false, end: "complete" } as const;
  await ledger.settle({ request, run: owner, role: "build", model: "a/b", ...bill });
  // What Node holds back for a slow reader would not be told when it is killed.
  await new Promise((told) => process.stdout.write(`${i}\n`, told));
}
