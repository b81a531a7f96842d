import { join } from "node:path";
import type { RunnerEvent, RunTaskInput } from "@slipway/contract";
import { type ScriptedProgram, startScriptedModel } from "@slipway/gateway/scripted";
import { onTestFinished } from "vitest";
import { createBuiltinDriver } from "../agents/builtin/index.ts";
import type { Driver } from "../agents/driver.ts";
import { run } from "../run.ts";
import { openCheckpoint, type Progress } from "../team/checkpoint.ts";
import { createMemoryChannel, type MemoryChannel } from "./memory-channel.ts";
import { makeWorkplace } from "./workplace.ts";

export interface TestRun {
  readonly channel: MemoryChannel;
  readonly workdir: string;
  readonly directory: string;
  /** Settles when the runner is done. */
  readonly over: Promise<void>;
  cancel(): void;
}

/** A run of the built-in agent, or of the given driver, in this process. */
export async function startTestRun(
  program: ScriptedProgram,
  task: Partial<RunTaskInput> = {},
  options: { readonly driver?: Driver; readonly found?: Progress } = {},
): Promise<TestRun> {
  const model = await startScriptedModel({ programs: { test: program }, listen: { host: "127.0.0.1", port: 0 } });
  onTestFinished(() => model.close());
  const { directory, workdir } = await makeWorkplace();
  if (options.found !== undefined) await (await openCheckpoint(join(directory, "checkpoint"))).save(options.found);
  const channel = createMemoryChannel({ agent: "builtin", prompt: "Go", model: "test", workdir, ...task });
  const environment = { PATH: process.env["PATH"] ?? "" };
  const controller = new AbortController();
  const over = run({
    channel,
    directory,
    environment,
    gateway: { baseUrl: model.baseUrl, token: "slr_test" },
    driver: () => options.driver ?? createBuiltinDriver({ environment }),
    mcpCommand: (socket) => ["node", "runner.mjs", "mcp", socket],
    signal: controller.signal,
  });
  return { channel, workdir, directory, over, cancel: () => controller.abort() };
}

export function agentEvents(events: readonly RunnerEvent[], agent = "lead") {
  return events.flatMap((event) => (event.type === "agent" && event.agent === agent ? [event.event] : []));
}

export function isToolStart(event: RunnerEvent): boolean {
  return event.type === "agent" && event.event.type === "tool" && event.event.phase === "start";
}

export function isStatus(status: string): (event: RunnerEvent) => boolean {
  return (event) => event.type === "agent" && event.event.type === "status" && event.event.status === status;
}
