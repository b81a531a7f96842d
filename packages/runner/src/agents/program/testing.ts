import { mkdir, mkdtemp, readdir, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { type AgentEvent, agentEventSchema, runLimitsSchema } from "@slipway/contract";
import {
  isSideCall,
  type ScriptedProgram,
  type ScriptedRequest,
  startScriptedModel,
  type Turn,
} from "@slipway/gateway/scripted";
import type { Agent, Driver, OpenOptions } from "../driver.ts";
import type { Surroundings } from "./find.ts";

/** Other people's agents, as set-up installs them for tests. */
export const testAgents = fileURLToPath(new URL("../../../../../scripts/test-agents", import.meta.url));

/** A directory to work in, homes for agents, and a model that says what a test wants. */
export interface TestPlace extends AsyncDisposable {
  readonly surroundings: Surroundings;
  readonly workdir: string;
  /** What the model was asked for, side calls left out. */
  readonly requests: readonly ScriptedRequest[];
  /** What the agent has saved last. */
  readonly state: unknown;
  open(driver: Driver, options?: Partial<OpenOptions>): Promise<Agent>;
  /** Processes whose home is in this place, whoever has started them. */
  processes(): Promise<number[]>;
  /** With -9. */
  killAll(): Promise<void>;
}

/** As in a sandbox with a way out, where nobody listens: the gateway is reached without it. */
export const testProxy = "http://127.0.0.1:9";
const environment = {
  PATH: `${dirname(process.execPath)}:/usr/bin:/bin`,
  HTTP_PROXY: testProxy,
  http_proxy: testProxy,
  HTTPS_PROXY: testProxy,
  https_proxy: testProxy,
  ALL_PROXY: testProxy,
  all_proxy: testProxy,
  NODE_USE_ENV_PROXY: "1",
  // Nobody there: an agent that goes by these finds no model.
  ANTHROPIC_BASE_URL: testProxy,
  CLAUDE_CONFIG_DIR: "/dev/null",
  XDG_CONFIG_HOME: "/dev/null",
  NO_PROXY: "localhost,127.0.0.1,::1",
  no_proxy: "localhost,127.0.0.1,::1",
};

export async function startPlace(work: ScriptedProgram = silence, toolsDirectory = testAgents): Promise<TestPlace> {
  const directory = await mkdtemp(join(tmpdir(), "agent-"));
  const workdir = join(directory, "work");
  await mkdir(workdir);
  const requests: ScriptedRequest[] = [];
  const program: ScriptedProgram = (request) => {
    if (isSideCall(request)) return { text: "A title" };
    requests.push(request);
    return work(request);
  };
  const model = await startScriptedModel({ programs: { test: program }, listen: { host: "127.0.0.1", port: 0 } });
  const homesDirectory = join(directory, "homes");
  const processes = () => processesWith(`HOME=${homesDirectory}/`);
  let state: unknown;
  return {
    surroundings: { toolsDirectory, homesDirectory, environment },
    workdir,
    requests,
    get state() {
      return state;
    },
    open: (driver, options = {}) =>
      driver.open({
        agent: "lead",
        workdir,
        model: "test",
        instructions: "Instructions for every agent.",
        permissions: "allow",
        limits: runLimitsSchema.parse({}),
        gateway: { baseUrl: model.baseUrl, token: "run-token" },
        tools: { definitions: [], command: [] },
        state: undefined,
        save: async (next) => {
          state = next;
        },
        signal: new AbortController().signal,
        ...options,
      }),
    processes,
    async killAll() {
      for (const pid of await processes()) {
        try {
          process.kill(pid, "SIGKILL");
        } catch {
          // It has ended meanwhile.
        }
      }
    },
    async [Symbol.asyncDispose]() {
      await model.close();
      await rm(directory, { recursive: true, force: true, maxRetries: 10 });
    },
  };
}

const silence = (): Turn => ({ text: "Nothing to do." });

/** All events of a turn, each checked against the contract. `onEvent` sees them as they come. */
export async function play(
  turn: AsyncIterable<AgentEvent>,
  onEvent?: (event: AgentEvent) => unknown,
): Promise<AgentEvent[]> {
  const events: AgentEvent[] = [];
  for await (const event of turn) {
    events.push(agentEventSchema.parse(event));
    await onEvent?.(event);
  }
  return events;
}

/** Options of a turn that nobody ends. */
export const unending = { signal: new AbortController().signal };

async function processesWith(setting: string): Promise<number[]> {
  const pids = (await readdir("/proc")).map(Number).filter((pid) => pid > 0);
  const environments = await Promise.all(pids.map((pid) => readFile(`/proc/${pid}/environ`, "latin1").catch(() => "")));
  return pids.filter((_pid, index) => environments[index]?.includes(setting));
}
