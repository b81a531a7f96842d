import type { Client } from "@slipway/client";
import type { Health } from "@slipway/contract";
import type { SandboxProvider } from "@slipway/sandbox";
import type { ProviderName } from "@slipway/sandbox/settings";
import type { Workspaces } from "@slipway/store/workspaces";
import type { Arguments, Context, HostFinding, Interrupts } from "./input/command.ts";
import type { Settings } from "./input/config.ts";
import type { ConnectOptions } from "./server/connect.ts";
import type { Environment } from "./terminal/environment.ts";
import type { Io, Output } from "./terminal/io.ts";
import { createProgress, silentProgress } from "./terminal/progress.ts";
import { harmless, harmlessLines, painter, toJson } from "./terminal/terminal.ts";

/** The program's connections to the outside. Tests pass their own. */
export interface Surroundings {
  openProvider(
    settings: Settings,
    environment: Environment,
    tools: Readonly<Record<string, string>>,
  ): Promise<SandboxProvider>;
  inspectProvider(
    name: ProviderName,
    settings: Settings,
    given: { readonly environment: Environment; readonly signal: AbortSignal },
  ): Promise<readonly HostFinding[]>;
  connectServer(options: ConnectOptions): Promise<Client>;
  serverHealth(stateDir: string, signal: AbortSignal): Promise<Health | undefined>;
}

const realSurroundings: Surroundings = {
  async openProvider(settings, environment, tools) {
    const { openProvider } = await import("@slipway/sandbox/open");
    return await openProvider({ ...settings, environment, tools });
  },
  async inspectProvider(name, settings, given) {
    const { inspectProvider } = await import("@slipway/sandbox/doctor");
    return await inspectProvider(name, { ...settings, ...given });
  },
  connectServer: async (options) => (await import("./server/connect.ts")).connectServer(options),
  async serverHealth(stateDir, signal) {
    const { clientOf, findHealth } = await import("./server/connect.ts");
    return await findHealth(clientOf(stateDir), signal);
  },
};

export interface ContextParts {
  readonly io: Io;
  readonly args: Arguments;
  readonly interrupts: Interrupts;
  readonly out: Output;
  readonly err: Output;
  readonly surroundings: Surroundings | undefined;
}

export function createContext(parts: ContextParts): Context & AsyncDisposable {
  const { io, args, interrupts, out, err, surroundings = realSurroundings } = parts;
  const json = args.flag("json");
  let provider: Promise<SandboxProvider> | undefined;
  let storage: Promise<Workspaces> | undefined;
  const progress = json ? silentProgress : createProgress(err, painter(err, io.env));
  const settings = async () => (await import("./input/config.ts")).readSettings(io.env);
  const stateDir = async () => (await import("./input/config.ts")).readStateDir(io.env);
  return {
    io,
    args,
    json,
    out,
    err,
    interrupts,
    paint: painter(out, io.env),
    progress,
    settings,
    provider(tools = {}, given) {
      const known = given === undefined ? settings() : Promise.resolve(given);
      provider ??= known.then((wanted) => surroundings.openProvider(wanted, io.env, tools));
      return provider;
    },
    storage() {
      storage ??= settings().then(async (known) =>
        (await import("@slipway/store/workspaces")).openWorkspaces(known.storage),
      );
      return storage;
    },
    inspectProvider: (name, known) =>
      surroundings.inspectProvider(name, known, { environment: io.env, signal: interrupts.signal }),
    stateDir,
    async server(settings = {}) {
      const onStart = () => progress.line("starting the server");
      const onOther = (names: readonly string[]) =>
        progress.line(
          `The server runs with other values of ${names.join(", ")}. Run \`slipway down\` to let the next command restart it.`,
        );
      const environment = { ...io.env, ...settings };
      const options = { stateDir: await stateDir(), environment, signal: interrupts.signal, onStart, onOther };
      const client = await surroundings.connectServer(options);
      progress.clear();
      return client;
    },
    serverHealth: async () => surroundings.serverHealth(await stateDir(), interrupts.signal),
    async result(value, text) {
      if (json) await out.write(`${toJson(value)}\n`);
      else await out.write(typeof text === "string" ? text : text());
    },
    clean: (text) => (out.isTerminal ? harmless(text) : text),
    async note(line) {
      if (json) return;
      progress.clear();
      await err.write(`${err.isTerminal ? harmlessLines(line) : line}\n`);
    },
    async [Symbol.asyncDispose]() {
      // What failed to open has been reported already.
      for (const opening of [provider, storage]) {
        const opened = await opening?.catch(() => undefined);
        await opened?.[Symbol.asyncDispose]();
      }
    },
  };
}
