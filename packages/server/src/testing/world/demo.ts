import { spawn } from "node:child_process";
import { once } from "node:events";
import { closeSync, openSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import process from "node:process";
import { setTimeout as delay } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { createClient } from "@slipway/client";
import { type ComputePrices, serverFiles } from "@slipway/contract";
import { openProvider } from "@slipway/sandbox/open";
import { readSandboxSettings } from "@slipway/sandbox/settings";
import { demoBuild } from "../../../../../examples/demo-build/demo-build.ts";
import { isAlive, type ProcessIdentity } from "../../work/repository/quarantine/process.ts";
import { startBilledModel } from "../billed-model.ts";
import { descendantsOf, processesOf, sandboxesOf } from "../processes.ts";
import type { Place } from "./place.ts";
import type { StandInPart } from "./stand-in.ts";

export const demoFaults = ["server", "keeper", "runner", "sandbox"] as const;
export type DemoFault = (typeof demoFaults)[number];

const program = fileURLToPath(new URL("../../main.ts", import.meta.url));
const price = { input: 3, output: 15 };
const model = "demo-build";
const shownLogBytes = 8000;

/**
 * The server as the command line starts it, on a state directory of its own, with the demo's model beside it. In a world with a
 * stand-in for Modal its sandboxes run there.
 */
export async function openDemo(
  { compute = {} }: { readonly compute?: ComputePrices },
  { directory, standIn, modalEnvironment = {} }: Place & Partial<StandInPart>,
  held: AsyncDisposableStack,
) {
  const stateDirectory = join(directory, "state");
  const logPath = join(directory, "server.log");
  const billed = held.use(await startBilledModel(model, demoBuild));
  const environment = {
    ...ownEnvironment(process.env),
    SLIPWAY_STATE_DIR: stateDirectory,
    NODE_COMPILE_CACHE: join(stateDirectory, "compile-cache"),
    SLIPWAY_MODEL: `anthropic/${model}`,
    SLIPWAY_PRICES: writePrices(join(directory, "prices.json"), compute),
    ANTHROPIC_BASE_URL: billed.baseUrl,
    ANTHROPIC_API_KEY: "none",
    ...modalEnvironment,
    ...(standIn !== undefined && { NODE_EXTRA_CA_CERTS: standIn.caFile }),
  };
  const { settings } = readSandboxSettings(modalEnvironment);
  const provider = await openProvider({ ...settings, stateDir: stateDirectory, environment: process.env });
  let server = await startServer(environment, logPath);
  let ending: Promise<void> | undefined;
  const endAll = async () => {
    await endServer(server, "SIGTERM");
    for (const { id } of await provider.list()) await (await provider.get(id)).destroy();
    await provider[Symbol.asyncDispose]();
    for (const { pid } of keepersOf(stateDirectory)) process.kill(pid, "SIGTERM");
    while (keepersOf(stateDirectory).length > 0) await delay(50);
  };
  const end = () => {
    ending ??= endAll();
    return ending;
  };
  held.defer(end);

  /**
   * Ends one with -9; `chance`, from 0 up to 1, chooses which. Answers what was hit; undefined: there is none of it now. A
   * server is started again, and waited for.
   */
  const strike = async (fault: DemoFault, chance: number): Promise<string | undefined> => {
    if (fault === "server") {
      const { pid } = server;
      await endServer(server, "SIGKILL");
      server = await startServer(environment, logPath);
      return `the server, ${pid}`;
    }
    if (fault === "sandbox" && standIn !== undefined) return await vanish(standIn, chance);
    const found = targets[fault](stateDirectory);
    const target = found[Math.floor(chance * found.length)];
    if (target === undefined || !isAlive(target)) return undefined;
    process.kill(target.pid, "SIGKILL");
    return `${target.what}, ${target.pid}`;
  };
  return {
    stateDirectory,
    /** The server's own. */
    databaseUrl: `file:${join(stateDirectory, "slipway.db")}`,
    model: billed,
    provider,
    /** What a token of the model costs. */
    price,
    strike,
    /** Ends the server in order, and all sandboxes. */
    end,
    client: createClient({ socketPath: join(stateDirectory, serverFiles.socket) }),
    /** The end of the server's log. */
    log: () => readFileSync(logPath, "utf8").slice(-shownLogBytes),
  };
}

/** One at Modal is gone, as when its machine fails. */
async function vanish({ running, faults }: StandInPart["standIn"], chance: number): Promise<string | undefined> {
  const all = running();
  const id = all[Math.floor(chance * all.length)];
  if (id === undefined) return undefined;
  await faults.vanish(id, "failed");
  return `the sandbox ${id} at Modal`;
}

/** As the demo's: settings of whoever runs the tests are left out. */
function ownEnvironment(given: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  const own =
    /^(SLIPWAY_(?!SANDBOX_UID)|DATABASE_URL|REDIS_|RESTATE_|SANDBOX_|MODAL_|MAX_PARALLEL|BUILD_|ANTHROPIC_|OPENAI_|VITEST|NODE_OPTIONS)/;
  return Object.fromEntries(Object.entries(given).filter(([name]) => !own.test(name)));
}

function writePrices(path: string, compute: ComputePrices): string {
  const own = { ...price, cacheRead: 0, cacheWrite: 0, maxOutputTokens: 32_000, hiddenThinking: "never" };
  writeFileSync(path, JSON.stringify({ date: "2026-01-01", compute, models: { [`anthropic/${model}`]: own } }));
  return path;
}

interface ServerProcess {
  readonly pid: number;
  readonly exit: Promise<unknown>;
}

async function startServer(environment: NodeJS.ProcessEnv, logPath: string): Promise<ServerProcess> {
  const log = openSync(logPath, "a");
  const child = spawn(process.execPath, ["--disable-warning=ExperimentalWarning", program], {
    stdio: ["ignore", "pipe", log],
    detached: true,
    env: environment,
  });
  closeSync(log);
  const exit = once(child, "exit");
  let said = "";
  for await (const chunk of child.stdout ?? []) {
    said += chunk;
    if (said.includes("\n")) break;
  }
  if (!said.includes('"ready":true')) throw new Error(`the server does not start: ${said}`);
  return { pid: child.pid ?? 0, exit };
}

async function endServer({ pid, exit }: ServerProcess, signal: NodeJS.Signals): Promise<void> {
  process.kill(pid, signal);
  await exit;
}

type Target = ProcessIdentity & { readonly what: string };

const targets: Readonly<Record<Exclude<DemoFault, "server">, (stateDirectory: string) => readonly Target[]>> = {
  keeper: (stateDirectory) => keepersOf(stateDirectory).map((one) => ({ ...one, what: "the keeper" })),
  runner: (stateDirectory) =>
    sandboxesOf(stateDirectory).flatMap(({ id, init }) =>
      descendantsOf(init)
        .filter(({ argv }) => argv[1]?.endsWith("/runner/runner.mjs"))
        .map((one) => ({ ...one, what: `the runner in ${id}` })),
    ),
  sandbox: (stateDirectory) => sandboxesOf(stateDirectory).map(({ id, init }) => ({ ...init, what: id })),
};

function keepersOf(stateDirectory: string) {
  return processesOf(stateDirectory).filter(({ argv }) =>
    argv.join(" ").startsWith(`slipway-keeper ${stateDirectory}`),
  );
}
