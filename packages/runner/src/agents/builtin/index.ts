import { createAnthropic } from "@ai-sdk/anthropic";
import type { Agent, Driver, OpenOptions } from "../driver.ts";
import { eventsOf } from "../program/events.ts";
import { openConversation } from "./conversation.ts";
import { createPermissions } from "./permissions.ts";
import { createOrUpdateFilesTool, readFilesTool } from "./tools/files.ts";
import { listFilesTool, searchTool } from "./tools/find.ts";
import { terminalTool } from "./tools/terminal.ts";
import { asBuiltinTool } from "./toolset.ts";
import { runTurn } from "./turn.ts";

export interface BuiltinSettings {
  /** For the commands that the agent runs. */
  readonly environment: Readonly<Record<string, string>>;
  /** Longer conversations are summarised. */
  readonly compactAtTokens?: number;
}

export const workTools = [terminalTool, createOrUpdateFilesTool, readFilesTool, listFilesTool, searchTool];
const longestCommandMs = 540_000;

/** Slipway's own agent: a tool loop of the AI SDK inside the runner's process. */
export function createBuiltinDriver(settings: BuiltinSettings): Driver {
  return { name: "builtin", open: async (options) => openAgent(options, settings) };
}

function openAgent(options: OpenOptions, settings: BuiltinSettings): Agent {
  const { environment, compactAtTokens = 120_000 } = settings;
  const { workdir, instructions, gateway, limits } = options;
  const conversation = openConversation(options.state, options.save);
  const permissions = createPermissions();
  const workplace = { workdir, environment, maxCommandMs: Math.min(longestCommandMs, limits.idleMs * 0.9) };
  const constant = {
    model: createAnthropic({ baseURL: `${gateway.baseUrl}/v1`, apiKey: gateway.token })(options.model),
    workdir,
    instructions,
    tools: [...workTools.map((create) => create(workplace)), ...options.tools.definitions.map(asBuiltinTool)],
    permissions: options.permissions === "ask" ? permissions : undefined,
    conversation,
    maxSteps: limits.maxSteps,
    compactAtTokens,
  };
  const closed = new AbortController();
  let turnOver: Promise<unknown> = Promise.resolve();
  return {
    async *turn(prompt, { signal }) {
      const scope = AbortSignal.any([signal, options.signal, closed.signal]);
      const end = yield* eventsOf((emit) => {
        const work = conversation.begin(prompt).then(() => runTurn({ ...constant, signal: scope, emit }));
        turnOver = work.catch(() => {}).finally(conversation.end);
        return work;
      });
      yield { type: "ended", end };
    },
    steer: conversation.steer,
    answer: permissions.answer,
    async [Symbol.asyncDispose]() {
      closed.abort();
      await turnOver;
    },
  };
}
