import { chmodSync, mkdirSync } from "node:fs";
import { flushCompileCache } from "node:module";
import { installedTools } from "@slipway/agent-host";
import { type ProviderHealth, SlipwayError } from "@slipway/contract";
import { openProvider } from "@slipway/sandbox/open";
import { otherProviders } from "@slipway/sandbox/settings";
import manifest from "../package.json" with { type: "json" };
import { createAgentCheck } from "./agents.ts";
import { createBuilding } from "./building.ts";
import { composeServer, type ServerOptions, type ServerSettings } from "./compose.ts";
import { computePriceOf } from "./compute-price.ts";
import { readProcessConfig, type ServerConfig } from "./config.ts";
import { createApp } from "./http/app.ts";
import { listenOnSocket } from "./http/listen.ts";
import { takeServerLock } from "./lock.ts";
import { keepServerName } from "./server-name.ts";
import { createHost, createScaledClock, createSimulation, usualWorld } from "./simulated/index.ts";
import { checkerToolDirectories } from "./work/gates/checker.ts";
import { openRepository } from "./work/planning/repository.ts";

/**
 * The server's process. Prints one line: that it is ready, or why not. Everything else goes to standard error. SIGTERM and
 * SIGINT stop it in an orderly way, a second one at once.
 */
const log = (line: string) => console.error(new Date().toISOString(), line);
const tell = (start: object) => process.stdout.write(`${JSON.stringify(start)}\n`);

// No other user may write the files of this process, whatever umask it inherited.
process.umask(process.umask() | 0o022);
process.title = "slipway-server";
// The process that started the server may be gone, with its pipe and terminal.
process.stdout.on("error", () => {});
process.on("SIGHUP", () => {});

try {
  await run(readProcessConfig());
} catch (error) {
  const isKnown = error instanceof SlipwayError;
  const told = isKnown ? error : new SlipwayError("internal", `the server failed: ${(error as Error).message}`);
  log(isKnown ? told.message : String((error as Error).stack));
  tell({ error: told.toJSON() });
  process.exitCode = 1;
}
process.exit();

async function run(config: ServerConfig): Promise<void> {
  const { stateDirectory, socketPath } = config;
  const ended = new Promise<void>((resolve) => {
    for (const signal of ["SIGINT", "SIGTERM"] as const) process.once(signal, () => resolve());
  });
  await using parts = new AsyncDisposableStack();
  prepare(stateDirectory);
  for (const { path, what } of config.locks) parts.use(await takeServerLock(path, what));
  const named = { ...config, name: config.name ?? keepServerName(stateDirectory) };
  const server = parts.use(await composeServer(named, await optionsOf(named, parts)));
  const ending = new AbortController();
  const app = createApp({
    builds: server.face,
    models: server.gateway.health,
    provider: providerHealth(config),
    version: manifest.version,
    log,
    signal: ending.signal,
  });
  parts.use(await listenOnSocket(app, socketPath));
  parts.defer(() => ending.abort());
  log(`listens on ${socketPath}`);
  tell({ ready: true, socketPath });
  // Before a possible kill, so that the next server starts faster.
  flushCompileCache();
  await ended;
  log("ends");
}

function providerHealth({ sandboxes }: ServerConfig): ProviderHealth {
  return { name: sandboxes.provider, because: sandboxes.because, others: otherProviders(sandboxes) };
}

/** As root, sandboxes of other users must be able to traverse the directory. */
function prepare(stateDirectory: string): void {
  const mode = process.getuid?.() === 0 ? 0o711 : 0o700;
  try {
    if (mkdirSync(stateDirectory, { recursive: true, mode }) !== undefined) chmodSync(stateDirectory, mode);
  } catch (cause) {
    const message = `SLIPWAY_STATE_DIR: cannot use ${stateDirectory}: ${(cause as Error).message}`;
    throw new SlipwayError("invalid_settings", message, { cause });
  }
}

async function optionsOf(config: ServerConfig & ServerSettings, parts: AsyncDisposableStack): Promise<ServerOptions> {
  const { stateDirectory, name, sandboxes, environment, simulation, agentsDirectory, remote } = config;
  const tools =
    simulation === null ? { ...(await installedTools(agentsDirectory)), ...checkerToolDirectories() } : undefined;
  const provider = parts.use(
    await openProvider({
      ...sandboxes,
      // A simulation has no sandboxes, but repositories are still read in local ones.
      provider: sandboxes.provider === "simulated" ? "local" : sandboxes.provider,
      stateDir: stateDirectory,
      environment,
      tools,
    }),
  );
  // Without working sandboxes a build would only fail, task by task.
  if (simulation === null) await provider.reconcile();
  const clock = { now: () => Date.now() };
  const price = computePriceOf(config);
  const building: ServerOptions["building"] = (made) =>
    createBuilding({ ...made, provider, price, stateDirectory, environment, remote, clock, warn: log });
  return {
    warn: log,
    checkAgent: tools && createAgentCheck(tools, agentsDirectory),
    openRepository: ({ id }, source, paid = provider) =>
      openRepository({ provider: paid, source, environment, labels: { build: id } }),
    building: simulation === null ? building : simulated(simulation.speed, name, parts),
  };
}

function simulated(speed: number, holder: string, parts: AsyncDisposableStack): ServerOptions["building"] {
  return ({ store, reports }) => {
    const clock = parts.use(createScaledClock({ startMs: Date.now(), factor: 1 }));
    const host = createHost({ store, holder, ring: reports.ring });
    const { pace, stageMs } = usualWorld;
    const world = { ...usualWorld, pace: pace / speed, stageMs: [stageMs[0] / speed, stageMs[1] / speed] as const };
    const work = createSimulation({ settings: world, clock, host });
    return { work, dummiesFor: () => ({ passing: async () => [] }), [Symbol.asyncDispose]: async () => {} };
  };
}
