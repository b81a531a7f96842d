import { join } from "node:path";
import { newId } from "@slipway/contract";
import { createGateway, openLedger, openRunLog, readGatewaySettings } from "@slipway/gateway";
import { createGatewayLedger, openDatabase, openStore } from "@slipway/store";

/** The gateway as it is in use: books on disk, one run, a socket. `agent run` has its books in a file, a server in its store. */
const [, , upstreamUrl = "", directory = "", books = ""] = process.argv;

const gateway = createGateway({
  settings: readGatewaySettings({ ANTHROPIC_BASE_URL: upstreamUrl, ANTHROPIC_API_KEY: "sk-bench" }),
  ledger: books === "store" ? await ledgerOfStore() : await openLedger(join(directory, "ledger")),
  log: await openRunLog(join(directory, "runs")),
  secret: "a secret of the bench",
});
const { token } = await gateway.openCalls({ id: newId("run"), roles: ["build"], budgetMicroUsd: 1_000_000_000_000 });
const socketPath = join(directory, "gateway.sock");
await gateway.listen({ path: socketPath });
process.send?.({ socketPath, token, hostToken: gateway.hostToken });

async function ledgerOfStore() {
  const { ledger } = await openStore(openDatabase({ url: `file:${join(directory, "slipway.db")}` }), Date);
  return createGatewayLedger(ledger, "the bench");
}
