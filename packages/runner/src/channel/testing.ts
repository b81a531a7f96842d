import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type NumberedEvent, newId, type RunId, type RunnerEvent } from "@slipway/contract";
import { createGateway, createMemoryLedger, type OpenRun, openRunLog, readGatewaySettings } from "@slipway/gateway";

const task = { agent: "builtin", prompt: "work", model: "scripted/demo" } as const;

export interface TestHost extends AsyncDisposable {
  readonly run: OpenRun;
  stored(): Promise<NumberedEvent[]>;
}

/** The host's side of one run as a gateway on a unix socket. Started again on the same directory it goes on. */
export async function startTestHost(directory: string, id: RunId): Promise<TestHost> {
  const log = await openRunLog(join(directory, "log"));
  const settings = readGatewaySettings({});
  const gateway = createGateway({ settings, ledger: createMemoryLedger(), log, secret: "a secret of the tests" });
  const run = await gateway.openRun({ id, roles: [], budgetMicroUsd: 0, task });
  const socketPath = socketOf(directory);
  rmSync(socketPath, { force: true });
  await gateway.listen({ path: socketPath });
  return {
    run,
    stored: () => Array.fromAsync(log.read(id, 0)),
    async [Symbol.asyncDispose]() {
      await gateway[Symbol.asyncDispose]();
      await run[Symbol.asyncDispose]();
    },
  };
}

export function socketOf(directory: string): string {
  return join(directory, "run.sock");
}

export interface TestPlace extends Disposable {
  readonly directory: string;
  readonly socketPath: string;
  /** The runner's own. */
  readonly spool: string;
  readonly run: RunId;
}

export function createTestPlace(): TestPlace {
  const directory = mkdtempSync(join(tmpdir(), "slipway-run-"));
  return {
    directory,
    socketPath: socketOf(directory),
    spool: join(directory, "runner"),
    run: newId("run"),
    [Symbol.dispose]: () => rmSync(directory, { recursive: true, force: true }),
  };
}

export function note(text: string): RunnerEvent {
  return { type: "note", agent: "lead", text };
}

export function text(delta: string, agent = "lead", channel: "answer" | "thinking" = "answer"): RunnerEvent {
  return { type: "agent", agent, event: { type: "text", channel, text: delta } };
}

export const ended: RunnerEvent = { type: "ended", reason: "completed", message: "done" };
