import { join } from "node:path";
import process from "node:process";
import { type BuildId, type BuildView, type ComputePrice, type StartBuild, startBuildSchema } from "@slipway/contract";
import type { ScriptedProgram } from "@slipway/gateway/scripted";
import { createAgentCheck } from "../../agents.ts";
import { createBuilding } from "../../building.ts";
import { composeServer } from "../../compose.ts";
import { localUser } from "../../faces/principal.ts";
import type { RemoteSettings } from "../../work/merging/remote.ts";
import { openRepository } from "../../work/planning/repository.ts";
import { openBuildRepository } from "../../work/repository/repository.ts";
import { allEvents } from "../all-events.ts";
import { modelSettings } from "./model.ts";
import type { Place } from "./place.ts";
import type { SandboxesPart } from "./sandboxes.ts";
import { driver } from "./store.ts";

export interface ServerOptions {
  /** What answers for every model. */
  readonly program: ScriptedProgram;
  readonly remote?: RemoteSettings;
  /** What sandboxes cost. Left out: nothing. */
  readonly price?: ComputePrice;
}

const free = { core: 0, cpusPerCore: 1, memoryGib: 0, gpus: {}, snapshotGibMonth: 0 };

/** A server with all its parts but HTTP. */
export async function openServer(
  { program, remote, price = free }: ServerOptions,
  { directory, clock, stateDirectory, provider, agents, tools }: Place & SandboxesPart,
  held: AsyncDisposableStack,
) {
  const environment = process.env;
  const warnings: string[] = [];
  const warn = (message: string) => void warnings.push(message);
  const settings = {
    stateDirectory,
    name: driver.holder,
    slots: 100,
    buildDefaults: {},
    provider: provider.name,
    database: { url: `file:${join(directory, "slipway.db")}` },
    models: modelSettings(stateDirectory),
  };
  const server = held.use(
    await composeServer(settings, {
      clock,
      warn,
      programs: { program },
      checkAgent: createAgentCheck(tools, agents),
      openRepository: ({ id }, source, paid = provider) =>
        openRepository({ provider: paid, source, environment, labels: { build: id } }),
      building: (made) =>
        createBuilding({ ...made, provider, price, stateDirectory, environment, remote, clock, warn }),
    }),
  );
  const repository = (build: BuildId) =>
    openBuildRepository({ directory: join(stateDirectory, "builds", build), environment });
  return {
    server,
    warnings,
    repository,
    async start(build: Partial<StartBuild>): Promise<BuildId> {
      const { id } = await server.face.start(
        localUser,
        startBuildSchema.parse({ request: "An app of parts", ...build }),
      );
      return id;
    },
    /** When the build has ended, or waits for somebody. Fails with the last of what happened when that takes too long. */
    async ended(build: BuildId, limitMs = 500_000): Promise<BuildView> {
      const limit = AbortSignal.timeout(limitMs);
      const events = await server.face.follow(localUser, build, { after: 0, limit: 1 }, limit);
      for await (const { type } of events) if (type === "build.paused") break;
      if (!limit.aborted) return await server.face.get(localUser, build);
      const last = (await allEvents(server.store, build)).slice(-30);
      const lines = last.map(({ at, type, data }) => `${at} ${type} ${JSON.stringify(data).slice(0, 300)}`);
      throw new Error(["the build does not end:", ...lines, ...warnings].join("\n"));
    },
    events: (build: BuildId) => allEvents(server.store, build),
    /** A file of main, as text. */
    async file(build: BuildId, path: string): Promise<string | undefined> {
      const opened = await repository(build);
      const files = await opened.read(await opened.main(), (one) => one === path);
      return files.get(path)?.toString("utf8");
    },
    /** What the preview answers at this path by now: nobody waits for it to follow main, not even the build's end. */
    async shown(build: BuildId, path: string): Promise<string> {
      const { preview } = await server.face.get(localUser, build);
      const address = new URL(preview ?? "");
      address.pathname = path;
      return await (await fetch(address, { headers: { connection: "close" } })).text();
    },
  };
}
