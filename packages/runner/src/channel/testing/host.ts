import { rmSync } from "node:fs";
import { join } from "node:path";
import type { NumberedEvent, RunId } from "@slipway/contract";
import { createGateway, createMemoryLedger, type OpenRun, openRunLog, readGatewaySettings } from "@slipway/gateway";
import { socketOf } from "./place.ts";

const task = { agent: "builtin", prompt: "work", model: "scripted/demo" } as const;

export interface TestHost extends AsyncDisposable {
  readonly run: OpenRun;
  /** Another run at the same host. */
  openRun(id: RunId): Promise<OpenRun & { readonly id: RunId }>;
  stored(): Promise<NumberedEvent[]>;
}

/** The host's side of one run as a gateway on a unix socket. Started again on the same directory it goes on. */
export async function startTestHost(directory: string, id: RunId): Promise<TestHost> {
  const log = await openRunLog(join(directory, "log"));
  const settings = readGatewaySettings({});
  const gateway = createGateway({ settings, ledger: createMemoryLedger(), log, secret: "a secret of the tests" });
  const openRun = (each: RunId) => gateway.openRun({ id: each, roles: [], budgetMicroUsd: 0, task });
  const run = await openRun(id);
  const socketPath = socketOf(directory);
  rmSync(socketPath, { force: true });
  await gateway.listen({ path: socketPath });
  return {
    run,
    openRun: async (other) => ({ ...(await openRun(other)), id: other }),
    stored: () => Array.fromAsync(log.read(id, 0)),
    async [Symbol.asyncDispose]() {
      await gateway[Symbol.asyncDispose]();
      await run[Symbol.asyncDispose]();
    },
  };
}
