import { PassThrough } from "node:stream";
import { createAnthropic } from "@ai-sdk/anthropic";
import type { AgentEvent } from "@slipway/contract";
import type { Agent, Driver, OpenOptions } from "../driver.ts";
import { openConversation } from "./conversation.ts";
import { createPermissions } from "./permissions.ts";
import { workTools } from "./tools/index.ts";
import { asBuiltinTool } from "./toolset.ts";
import { runTurn } from "./turn.ts";

export interface BuiltinSettings {
  /** For the commands that the agent runs. */
  readonly environment: Readonly<Record<string, string>>;
  /** A conversation that is longer is summarised. */
  readonly compactAtTokens?: number;
}

const longestCommandMs = 540_000;

/** The agent that comes with Slipway: a tool loop of the AI SDK inside the runner's own process. */
export function createBuiltinDriver(settings: BuiltinSettings): Driver {
  return { name: "builtin", open: async (options) => openAgent(options, settings) };
}

function openAgent(options: OpenOptions, { environment, compactAtTokens = 120_000 }: BuiltinSettings): Agent {
  const { workdir, instructions, gateway, limits } = options;
  const conversation = openConversation(options.state, options.save);
  const permissions = createPermissions();
  const workplace = { workdir, environment, maxCommandMs: Math.min(longestCommandMs, limits.idleMs * 0.9) };
  const settled = {
    model: createAnthropic({ baseURL: `${gateway.baseUrl}/v1`, apiKey: gateway.token })(options.model),
    workdir,
    instructions,
    tools: [...workTools(workplace), ...options.tools.definitions.map(asBuiltinTool)],
    permissions: options.permissions === "ask" ? permissions : undefined,
    conversation,
    maxSteps: limits.maxSteps,
    compactAtTokens,
  };
  const closed = new AbortController();
  let current: Promise<void> | undefined;
  return {
    async *turn(prompt, { signal }) {
      const events = new PassThrough({ objectMode: true });
      const emit = (event: AgentEvent) => void events.write(event);
      const scope = AbortSignal.any([signal, options.signal, closed.signal]);
      current = (async () => {
        await conversation.begin(prompt);
        const final = await runTurn({ ...settled, signal: scope, emit });
        current = undefined;
        events.end(final);
      })().catch((error) => void events.destroy(error));
      yield* events as AsyncIterable<AgentEvent>;
    },
    steer(text) {
      if (current !== undefined) conversation.steer(text);
      return current !== undefined;
    },
    answer: permissions.answer,
    async [Symbol.asyncDispose]() {
      closed.abort();
      await current;
    },
  };
}
