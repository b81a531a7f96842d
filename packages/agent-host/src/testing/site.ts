import { chmod, mkdtemp, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type { CreateSandboxInput } from "@slipway/contract";
import { type End, type NumberedEvent, newId, type RunId, type RunTaskInput } from "@slipway/contract";
import {
  createGateway,
  type Gateway,
  type GatewaySettings,
  openLedger,
  openRunLog,
  readGatewaySettings,
} from "@slipway/gateway";
import { type ScriptedModelOptions, type ScriptedProgram, startScriptedModel } from "@slipway/gateway/scripted";
import type { Sandbox, SandboxProvider } from "@slipway/sandbox";
import { openProvider } from "@slipway/sandbox/open";
import { type Run, type StartRun, startRun } from "../start.ts";
import { agentTool, installedTools, runnerTools, toolDirectories } from "../tools.ts";

/** Where set-up puts other people's agents for tests. */
export const agentsDirectory = fileURLToPath(new URL("../../../../scripts/test-agents", import.meta.url));
export const agents = ["builtin", "claude-code", "acp:opencode", "acp:codex", "acp:gemini"] as const;
/** One for each driver. */
export const drivers = ["builtin", "claude-code", "acp:codex"] as const;
/** Real agents take seconds to start, and more beside other tests. */
export const agentTestMs = 300_000;

/** Sandboxes, a gateway and a scripted model, as a host has them. */
export interface Site extends AsyncDisposable {
  readonly directory: string;
  readonly provider: SandboxProvider;
  readonly gateway: Gateway;
  sandbox(agent: string, request?: CreateSandboxInput): Promise<Sandbox & AsyncDisposable>;
  start(sandbox: Sandbox, order: Order): Promise<Run>;
}

export interface Order {
  readonly task: Partial<RunTaskInput> & Pick<RunTaskInput, "agent" | "prompt">;
  readonly budgetMicroUsd?: number;
  readonly graceMs?: number;
  /** Of a run that was let go of. */
  readonly again?: Pick<StartRun, "exec"> & { readonly id: RunId };
}

export interface SiteOptions {
  readonly programs: Readonly<Record<string, ScriptedProgram>>;
  /** The role `build`'s. */
  readonly model: string;
  readonly environment?: Readonly<Record<string, string>>;
  /** As in a price file, by `provider/model`. */
  readonly prices?: Readonly<Record<string, object>>;
  readonly cassettes?: "record" | "replay" | "auto";
  readonly onRequest?: ScriptedModelOptions["onRequest"];
  /** A directory with more agents. */
  readonly moreAgents?: string;
  /** For how long the model may say nothing. */
  readonly silenceMs?: number;
}

/** Long enough for a busy machine. */
const usualSilenceMs = 60_000;

const quick = (settings: GatewaySettings, silenceMs = usualSilenceMs): GatewaySettings => ({
  ...settings,
  timeouts: { connectMs: 20_000, firstByteMs: silenceMs, idleMs: silenceMs, totalMs: 2 * usualSilenceMs },
  retries: { tries: 2, baseMs: 10, maxMs: 50, maxRetryAfterMs: 100 },
});

export async function openSite(options: SiteOptions): Promise<Site> {
  await using parts = new AsyncDisposableStack();
  const directory = await mkdtemp("/var/tmp/slipway-site-");
  // What has just ended may still be writing.
  parts.defer(() => rm(directory, { recursive: true, force: true, maxRetries: 10 }));
  // As root, sandboxes run as another user, who must be able to pass through.
  await chmod(directory, 0o711);
  const { programs, model, onRequest } = options;
  const path = join(directory, "model.sock");
  parts.use(await startScriptedModel({ programs, listen: { path }, ...(onRequest && { onRequest }) }));
  const settings = readGatewaySettings(await environmentOf(directory, options), { scripted: { path } });
  const ledger = parts.use(await openLedger(join(directory, "ledger")));
  const log = await openRunLog(join(directory, "events"));
  const secret = "of the tokens of tests";
  const gateway = parts.use(createGateway({ settings: quick(settings, options.silenceMs), ledger, log, secret }));
  const tools = Object.assign(
    {},
    ...(await Promise.all(agents.map((agent) => toolDirectories(agent, agentsDirectory)))),
    ...(options.moreAgents === undefined ? [] : [await installedTools(options.moreAgents)]),
  );
  const stateDir = join(directory, "state");
  const provider = parts.use(await openProvider({ stateDir, environment: process.env, tools }));
  // A sandbox outlives who made it: none is left to the machine, whatever a test has kept.
  const made = parts.use(new AsyncDisposableStack());
  const held = parts.move();
  return {
    directory,
    provider,
    gateway,
    async sandbox(agent, request = {}) {
      const tool = agentTool(agent);
      const tools = [...runnerTools, ...(tool === undefined ? [] : [tool])];
      return made.use(await provider.create({ tools, ...request }));
    },
    start(sandbox, { task, budgetMicroUsd = 1_000_000, graceMs = 10_000, again: { id = newId("run"), ...exec } = {} }) {
      const name = model.slice(model.indexOf("/") + 1);
      const grant = { id, roles: ["build"] as const, budgetMicroUsd, task: { model: name, ...task } };
      return startRun({ sandbox, gateway, grant, graceMs, ...exec });
    },
    [Symbol.asyncDispose]: () => held.disposeAsync(),
  };
}

async function environmentOf(directory: string, options: SiteOptions): Promise<Record<string, string>> {
  const { model, environment = {}, prices, cassettes } = options;
  const priceFile = join(directory, "prices.json");
  if (prices !== undefined) await writeFile(priceFile, JSON.stringify({ date: "2026-01-01", models: prices }));
  return {
    SLIPWAY_MODEL: model,
    ...(prices !== undefined && { SLIPWAY_PRICES: priceFile }),
    ...(cassettes !== undefined && {
      SLIPWAY_CASSETTES: join(directory, "cassettes"),
      SLIPWAY_CASSETTE_MODE: cassettes,
    }),
    ...environment,
  };
}

/** All that a run reported, and its end. */
export async function toEnd(run: Run): Promise<{ readonly events: readonly NumberedEvent[]; readonly end: End }> {
  const events = await Array.fromAsync(run.events());
  return { events, end: await run.ended };
}
