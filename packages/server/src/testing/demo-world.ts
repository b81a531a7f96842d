import { spawn } from "node:child_process";
import { once } from "node:events";
import { chmodSync, closeSync, mkdtempSync, openSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import process from "node:process";
import { setTimeout as delay } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { type Client, createClient } from "@slipway/client";
import { serverFiles } from "@slipway/contract";
import type { Store } from "@slipway/engine";
import type { SandboxProvider } from "@slipway/sandbox";
import { openProvider } from "@slipway/sandbox/open";
import { type Database, openDatabase, openStore } from "@slipway/store";
import { demoBuild } from "../../../../examples/demo-build/demo-build.ts";
import { isAlive, type ProcessIdentity } from "../work/repository/quarantine/process.ts";
import { type BilledModel, startBilledModel } from "./billed-model.ts";
import { descendantsOf, processesOf, sandboxesOf } from "./processes.ts";

export const demoFaults = ["server", "keeper", "runner", "sandbox"] as const;
export type DemoFault = (typeof demoFaults)[number];

/** The server as the command line starts it, on a state directory of its own, with the demo's model beside it. */
export interface DemoWorld extends AsyncDisposable {
  readonly stateDirectory: string;
  readonly client: Client;
  readonly model: BilledModel;
  readonly provider: SandboxProvider;
  readonly database: Database;
  readonly store: Store;
  /** What a token of the model costs. */
  readonly price: { readonly input: number; readonly output: number };
  /** The end of the server's log. */
  log(): string;
  /**
   * Ends one with -9; `chance`, from 0 up to 1, chooses which. Answers what was hit; undefined: there is none of it now. A
   * server is started again, and waited for.
   */
  strike(fault: DemoFault, chance: number): Promise<string | undefined>;
  /** Ends the server in order, and all sandboxes. */
  end(): Promise<void>;
}

const program = fileURLToPath(new URL("../main.ts", import.meta.url));
const price = { input: 3, output: 15 };
const model = "demo-build";
const shownLogBytes = 8000;

export async function openDemoWorld(): Promise<DemoWorld> {
  await using parts = new AsyncDisposableStack();
  const directory = mkdtempSync("/var/tmp/slipway-demo-");
  parts.defer(() => rmSync(directory, { recursive: true, force: true, maxRetries: 10 }));
  // As root, sandboxes run as another user, who must be able to pass through.
  chmodSync(directory, 0o711);
  const stateDirectory = join(directory, "state");
  const logPath = join(directory, "server.log");
  const billed = parts.use(await startBilledModel(model, demoBuild));
  const environment = {
    ...ownEnvironment(process.env),
    SLIPWAY_STATE_DIR: stateDirectory,
    NODE_COMPILE_CACHE: join(stateDirectory, "compile-cache"),
    SLIPWAY_MODEL: `anthropic/${model}`,
    SLIPWAY_PRICES: writePrices(join(directory, "prices.json")),
    ANTHROPIC_BASE_URL: billed.baseUrl,
    ANTHROPIC_API_KEY: "none",
  };
  const provider = await openProvider({ stateDir: stateDirectory, environment: process.env });
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
  parts.defer(end);
  const database = parts.use(openDatabase({ url: `file:${join(stateDirectory, "slipway.db")}` }));
  const store = await openStore(database, { now: () => Date.now() });

  const strike = async (fault: DemoFault, chance: number) => {
    if (fault === "server") {
      const { pid } = server;
      await endServer(server, "SIGKILL");
      server = await startServer(environment, logPath);
      return `the server, ${pid}`;
    }
    const found = targets[fault](stateDirectory);
    const target = found[Math.floor(chance * found.length)];
    if (target === undefined || !isAlive(target)) return undefined;
    process.kill(target.pid, "SIGKILL");
    return `${target.what}, ${target.pid}`;
  };
  const opened = parts.move();
  return {
    stateDirectory,
    model: billed,
    provider,
    database,
    store,
    price,
    strike,
    end,
    client: createClient({ socketPath: join(stateDirectory, serverFiles.socket) }),
    log: () => readFileSync(logPath, "utf8").slice(-shownLogBytes),
    [Symbol.asyncDispose]: () => opened.disposeAsync(),
  };
}

/** As the demo's: settings of whoever runs the tests are left out. */
function ownEnvironment(given: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  const own =
    /^(SLIPWAY_(?!SANDBOX_UID)|DATABASE_URL|REDIS_|RESTATE_|SANDBOX_|MODAL_|MAX_PARALLEL|BUILD_|ANTHROPIC_|OPENAI_|VITEST|NODE_OPTIONS)/;
  return Object.fromEntries(Object.entries(given).filter(([name]) => !own.test(name)));
}

function writePrices(path: string): string {
  const own = { ...price, cacheRead: 0, cacheWrite: 0, maxOutputTokens: 32_000, hiddenThinking: "never" };
  writeFileSync(path, JSON.stringify({ date: "2026-01-01", models: { [`anthropic/${model}`]: own } }));
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
  return processesOf(stateDirectory).filter(({ argv }) => argv.join(" ").trim() === `slipway-keeper ${stateDirectory}`);
}
