import { chmod, mkdtemp, rm } from "node:fs/promises";
import { join } from "node:path";
import process from "node:process";
import { installedTools } from "@slipway/agent-host";
import type { BuildId, BuildView, StartBuild } from "@slipway/contract";
import { startBuildSchema } from "@slipway/contract";
import type { BuildEvent } from "@slipway/engine";
import type { ScriptedProgram } from "@slipway/gateway/scripted";
import type { SandboxProvider } from "@slipway/sandbox";
import { openProvider } from "@slipway/sandbox/open";
import { createAgentCheck } from "../agents.ts";
import { createBuilding } from "../building.ts";
import { composeServer, type Server } from "../compose.ts";
import { localUser } from "../faces/principal.ts";
import { checkerToolDirectories } from "../work/gates/checker.ts";
import type { RemoteSettings } from "../work/merging/remote.ts";
import { readModelSettings } from "../work/planning/open-models.ts";
import { openRepository } from "../work/planning/repository.ts";
import { type BuildRepository, openBuildRepository } from "../work/repository/repository.ts";
import { allEvents } from "./all-events.ts";

export interface WholeBuildsOptions {
  readonly program: ScriptedProgram;
  /** Holds a directory for each agent that is a program of its own. */
  readonly agents?: string | undefined;
  readonly remote?: RemoteSettings | undefined;
  /** Left out: one of its own, which goes with it. */
  readonly directory?: string | undefined;
}

/** A server with all its parts but HTTP, on a state directory of its own, whose models are one scripted program. */
export interface WholeBuilds extends AsyncDisposable {
  readonly directory: string;
  readonly server: Server;
  readonly provider: SandboxProvider;
  readonly warnings: readonly string[];
  start(build: Partial<StartBuild>): Promise<BuildId>;
  /** When the build has ended, or waits for somebody. Fails with the last of what happened when that takes too long. */
  ended(build: BuildId, limitMs?: number): Promise<BuildView>;
  events(build: BuildId): Promise<readonly BuildEvent[]>;
  repository(build: BuildId): Promise<BuildRepository>;
  /** A file of main, as text. */
  file(build: BuildId, path: string): Promise<string | undefined>;
  /** What the preview answers at this path by now: nobody waits for it to follow main, not even the build's end. */
  shown(build: BuildId, path: string): Promise<string>;
}

const clock = { now: () => Date.now() };

export async function openWholeBuilds({
  program,
  agents = "/nowhere",
  remote,
  directory: given,
}: WholeBuildsOptions): Promise<WholeBuilds> {
  await using parts = new AsyncDisposableStack();
  const directory = given ?? (await mkdtemp("/var/tmp/slipway-whole-"));
  if (given === undefined) parts.defer(() => rm(directory, { recursive: true, force: true, maxRetries: 10 }));
  // As root, sandboxes run as another user, who must be able to pass through.
  await chmod(directory, 0o711);
  const environment = process.env;
  const stateDirectory = join(directory, "state");
  const tools = { ...(await installedTools(agents)), ...checkerToolDirectories() };
  const provider = parts.use(await openProvider({ stateDir: stateDirectory, environment, tools }));
  parts.defer(async () => {
    for (const { id } of await provider.list()) await (await provider.get(id)).destroy();
  });
  const warnings: string[] = [];
  const warn = (message: string) => void warnings.push(message);
  const settings = {
    stateDirectory,
    name: "server-1",
    slots: 100,
    buildDefaults: {},
    provider: "local",
    database: { url: `file:${join(directory, "slipway.db")}` },
    models: {
      ...readModelSettings({ SLIPWAY_MODEL: "scripted/program" }, stateDirectory),
      retries: { tries: 2, baseMs: 10, maxMs: 50, maxRetryAfterMs: 100 },
      // A program may wait for others.
      timeouts: { connectMs: 10_000, firstByteMs: 600_000, idleMs: 60_000, totalMs: 1_800_000 },
    },
  };
  const server = parts.use(
    await composeServer(settings, {
      clock,
      warn,
      programs: { program },
      checkAgent: createAgentCheck(tools, agents),
      openRepository: ({ id }, source) => openRepository({ provider, source, environment, labels: { build: id } }),
      building: (made) => createBuilding({ ...made, provider, stateDirectory, environment, remote, clock, warn }),
    }),
  );
  const repository = (build: BuildId) =>
    openBuildRepository({ directory: join(stateDirectory, "builds", build), environment });
  const held = parts.move();
  return {
    directory,
    server,
    provider,
    warnings,
    repository,
    async start(build) {
      const { id } = await server.face.start(
        localUser,
        startBuildSchema.parse({ request: "An app of parts", ...build }),
      );
      return id;
    },
    async ended(build, limitMs = 500_000) {
      const limit = AbortSignal.timeout(limitMs);
      const events = await server.face.follow(localUser, build, { after: 0, limit: 1 }, limit);
      for await (const { type } of events) if (type === "build.paused") break;
      if (!limit.aborted) return await server.face.get(localUser, build);
      const last = (await allEvents(server.store, build)).slice(-30);
      const lines = last.map(({ at, type, data }) => `${at} ${type} ${JSON.stringify(data).slice(0, 300)}`);
      throw new Error(["the build does not end:", ...lines, ...warnings].join("\n"));
    },
    events: (build) => allEvents(server.store, build),
    async file(build, path) {
      const opened = await repository(build);
      const files = await opened.read(await opened.main(), (one) => one === path);
      return files.get(path)?.toString("utf8");
    },
    async shown(build, path) {
      const { preview } = await server.face.get(localUser, build);
      const address = new URL(preview ?? "");
      address.pathname = path;
      return await (await fetch(address, { headers: { connection: "close" } })).text();
    },
    [Symbol.asyncDispose]: () => held.disposeAsync(),
  };
}
