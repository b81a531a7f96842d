import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { newId, type RunTaskInput } from "@slipway/contract";
import { createGateway, createMemoryLedger, type OpenRun, openRunLog, readGatewaySettings } from "@slipway/gateway";
import { type ScriptedProgram, startScriptedModel } from "@slipway/gateway/scripted";
import { onTestFinished } from "vitest";
import { buildRunner } from "../../build.mjs";
import { makeWorkplace } from "./workplace.ts";

export interface TestHost {
  readonly run: OpenRun;
  readonly workdir: string;
  /** Starts the bundled runner as a process of its own, without a sandbox around it. */
  startRunner(): ChildProcess;
}

/** A real gateway on a unix socket, with a run of the built-in agent whose model is the program. */
export async function openTestHost(program: ScriptedProgram, task: Partial<RunTaskInput> = {}): Promise<TestHost> {
  const { directory, workdir } = await makeWorkplace();
  const [modelPath, socketPath] = [join(directory, "model.sock"), join(directory, "run.sock")];
  const model = await startScriptedModel({ programs: { test: program }, listen: { path: modelPath } });
  onTestFinished(() => model.close());
  const settings = readGatewaySettings({ SLIPWAY_MODEL: "scripted/test" }, { scripted: { path: modelPath } });
  const log = await openRunLog(join(directory, "log"));
  const gateway = createGateway({ settings, ledger: createMemoryLedger(), log, secret: "of the tokens of tests" });
  onTestFinished(() => gateway[Symbol.asyncDispose]());
  await gateway.listen({ path: socketPath });
  const run = await gateway.openRun({
    id: newId("run"),
    roles: ["build"],
    budgetMicroUsd: 1_000_000,
    task: { agent: "builtin", prompt: "Go", model: "build", workdir, ...task },
  });
  const runner = await buildRunner();
  return {
    run,
    workdir,
    startRunner() {
      const child = spawn(process.execPath, [join(runner, "runner.mjs")], {
        stdio: ["ignore", "inherit", "inherit"],
        env: {
          PATH: process.env["PATH"],
          SLIPWAY_RUN_TOKEN: run.token,
          SLIPWAY_RUN_SOCKET: socketPath,
          SLIPWAY_RUN_DIR: join(directory, "runner"),
          SLIPWAY_TOOLS_DIR: join(directory, "tools"),
        },
      });
      onTestFinished(async () => {
        if (child.exitCode !== null || child.signalCode !== null) return;
        const exit = once(child, "exit");
        child.kill("SIGKILL");
        await exit;
      });
      return child;
    },
  };
}
