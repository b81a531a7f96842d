import { type AgentEvent, type RunLimits, runLimitsSchema } from "@slipway/contract";
import { type ScriptedProgram, startScriptedModel } from "@slipway/gateway/scripted";
import { onTestFinished } from "vitest";
import { makeWorkplace } from "../../testing/workplace.ts";
import type { Agent, TeamTool } from "../driver.ts";
import { createBuiltinDriver } from "./index.ts";

export interface TestAgentOptions {
  readonly permissions?: "allow" | "ask";
  readonly limits?: Partial<RunLimits>;
  readonly state?: unknown;
  readonly team?: readonly TeamTool[];
  readonly compactAtTokens?: number;
  readonly baseUrl?: string;
  save?(state: unknown): Promise<void>;
}

export interface TestAgent {
  readonly agent: Agent;
  readonly workdir: string;
  /** Every state that was saved, oldest first. */
  readonly states: unknown[];
}

/** A built-in agent whose model is the program, on loopback. */
export async function openTestAgent(program: ScriptedProgram, options: TestAgentOptions = {}): Promise<TestAgent> {
  const model = await startScriptedModel({ programs: { test: program }, listen: { host: "127.0.0.1", port: 0 } });
  onTestFinished(() => model.close());
  const { workdir } = await makeWorkplace();
  const states: unknown[] = [];
  const { compactAtTokens } = options;
  const driver = createBuiltinDriver({
    environment: { PATH: process.env["PATH"] ?? "" },
    ...(compactAtTokens !== undefined && { compactAtTokens }),
  });
  const agent = await driver.open({
    agent: "lead",
    workdir,
    model: "test",
    instructions: "Be brief.",
    permissions: options.permissions ?? "allow",
    limits: runLimitsSchema.parse(options.limits ?? {}),
    gateway: { baseUrl: options.baseUrl ?? model.baseUrl, token: "slr_test" },
    tools: { definitions: options.team ?? [], command: [] },
    state: options.state,
    save: options.save ?? (async (state) => void states.push(structuredClone(state))),
    signal: new AbortController().signal,
  });
  onTestFinished(() => agent[Symbol.asyncDispose]());
  return { agent, workdir, states };
}

export async function takeTurn(
  agent: Agent,
  prompt: string,
  signal = new AbortController().signal,
): Promise<AgentEvent[]> {
  return await Array.fromAsync(agent.turn(prompt, { signal }));
}

export function endedCalls(events: readonly AgentEvent[]): AgentEvent[] {
  return events.filter((event) => event.type === "tool" && event.phase === "end");
}
