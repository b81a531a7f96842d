import { randomBytes } from "node:crypto";
import { existsSync } from "node:fs";
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import {
  type BuildId,
  type BuildSettings,
  type BuildSource,
  computeRate,
  limitsSchema,
  microUsdPerUsd,
} from "@slipway/contract";
import type { Bridge, Dummies, NoteWork, RepositoryReader, Store, Work, WorkingBuild } from "@slipway/engine";
import type { Gateway, GatewaySettings } from "@slipway/gateway";
import type { ScriptedProgram } from "@slipway/gateway/scripted";
import type { SandboxProvider } from "@slipway/sandbox";
import { createRunLog, type DatabaseAddress, openDatabase, openStore } from "@slipway/store";
import { openBridge, type RedisAddress } from "@slipway/store/bridge";
import { computePriceOf } from "./compute-price.ts";
import { type CoordinatorClock, openCoordinator } from "./drive/coordinator.ts";
import { createNotes } from "./drive/notes.ts";
import { createReports, type Reports } from "./drive/reports.ts";
import type { RestateSettings } from "./drive/restate/drive.ts";
import { type BuildFaceParts, type BuildGit, createBuildFace, isUnderway } from "./faces/builds/builds.ts";
import type { BuildFace } from "./faces/builds/face.ts";
import { announcing, createNews } from "./faces/builds/news.ts";
import type { PreviewParts } from "./faces/builds/preview.ts";
import type { Attempts } from "./work/attempts/attempts.ts";
import { readSource } from "./work/build-record.ts";
import { openBuildSecrets } from "./work/build-secrets.ts";
import { readRemoteEnd } from "./work/merging/remote.ts";
import { openModels } from "./work/planning/open-models.ts";
import { createPlanning } from "./work/planning/planning.ts";
import type { PassesWithout } from "./work/planning/stages.ts";
import { repositoryName } from "./work/repository/repository.ts";
import { joinWork } from "./work/work.ts";

export interface ServerSettings {
  readonly stateDirectory: string;
  /** This server's name among those that share a database. */
  readonly name: string;
  readonly database: DatabaseAddress;
  readonly redis?: RedisAddress | undefined;
  /** An external Restate; without it, timers of this process drive the builds. */
  readonly restate?: RestateSettings | undefined;
  /** The most sandboxes that work at the same time, over all builds. */
  readonly slots: number;
  /** Defaults for settings that the user leaves out. */
  readonly buildDefaults: Partial<BuildSettings>;
  readonly models: GatewaySettings;
  /** The name of the sandbox provider. */
  readonly provider: string;
}

export interface ServerOptions {
  /** Creates what runs in sandboxes. */
  readonly building: (parts: BuildingPorts) => Building;
  /** `source`: what the build starts from, by its record. `provider`: see `Building`. */
  readonly openRepository: (
    build: WorkingBuild,
    source: () => Promise<BuildSource | null>,
    provider: SandboxProvider | undefined,
  ) => RepositoryReader & AsyncDisposable;
  readonly checkAgent?: BuildFaceParts["checkAgent"];
  readonly clock?: CoordinatorClock | undefined;
  /** Programs of the scripted model. Default: the shipped ones. */
  readonly programs?: Readonly<Record<string, ScriptedProgram>> | undefined;
  readonly warn: (message: string) => void;
}

/** Does the tasks of builds, from the first attempt to main. A simulation has no repository and no previews. */
export interface Building extends AsyncDisposable {
  readonly work: Work;
  /** Of sandboxes that are paid for. Left out: there is nothing to pay. */
  readonly provider?: SandboxProvider;
  /** `work` names what in the build they are for. */
  dummiesFor(build: WorkingBuild, work: string): Dummies;
  /** Creates the first commit of main, before planning. */
  readonly makeMain?: Attempts["makeMain"];
  gitOf?(build: BuildId): Promise<BuildGit>;
  readonly previews?: ReturnType<PreviewParts["previews"]>;
  /** Left out: no check does. */
  readonly passesWithout?: PassesWithout;
}

export interface BuildingPorts {
  /** This server's. */
  readonly name: string;
  readonly store: Store;
  readonly bridge: Bridge;
  readonly gateway: Gateway;
  readonly reports: Reports;
  readonly note: NoteWork;
}

export interface Server extends AsyncDisposable {
  readonly store: Store;
  readonly face: BuildFace;
  readonly gateway: Gateway;
}

/** Puts the parts of a server together. It resumes the builds of earlier servers. */
export async function composeServer(settings: ServerSettings, options: ServerOptions): Promise<Server> {
  const { stateDirectory, name, slots } = settings;
  const { clock = { now: () => Date.now() }, warn } = options;
  await using parts = new AsyncDisposableStack();
  await mkdir(stateDirectory, { recursive: true });
  const database = parts.use(openDatabase(settings.database));
  const news = createNews();
  const store = announcing(await openStore(database, clock), news);
  // The earlier server with this name is gone, and its reservations may have been spent.
  await store.ledger.abandon(name);
  const bridge = await openBridge({ database, clock, redis: settings.redis, warn });
  parts.defer(() => bridge.close());
  // Restate's SDK is only loaded if it is used.
  const openDrive =
    settings.restate && (await (await import("./drive/restate/drive.ts")).restateDrive(settings.restate));
  const models = parts.use(
    await openModels({
      settings: settings.models,
      ledger: store.ledger,
      holder: name,
      clock,
      directory: stateDirectory,
      log: createRunLog(database),
      programs: options.programs,
      secret: await keepSecret(join(stateDirectory, "run-secret")),
      ...(settings.models.logPrompts && { logger: (line) => warn(JSON.stringify(line)) }),
    }),
  );
  const secrets = openBuildSecrets(join(stateDirectory, "builds"));
  // Removes secrets of builds that an earlier server did not get to start.
  await secrets.sweep((build) => isUnderway(store, build));
  const reports = createReports(store);
  const notes = createNotes(store, name);
  const price = computePriceOf(settings);
  const building = parts.use(
    options.building({ name, store, bridge, gateway: models.gateway, reports, note: notes.note }),
  );
  const planning = parts.use(
    createPlanning({
      store,
      models,
      clock,
      answersDirectory: join(stateDirectory, "answers"),
      openRepository: (build) => options.openRepository(build, () => readSource(store, build.id), building.provider),
      dummiesFor: building.dummiesFor,
      makeMain: async (build) => await building.makeMain?.(build),
      gpus: building.provider?.capabilities.gpu === true ? Object.keys(price.gpus) : [],
      passesWithout: async (...given) => (await building.passesWithout?.(...given)) ?? false,
      ring: async (build) => reports.ring(build),
    }),
  );
  const work = joinWork(planning, building.work, secrets.remove);
  const coordinator = { store, reports, openDrive, work, name, slots, clock, warn };
  parts.use(await openCoordinator({ ...coordinator, onDrive: notes.drives, onTurn: news.tell }));
  const usdPerMinute = (gpu: string | undefined) =>
    ((computeRate(price, { ...limitsSchema.parse({}), gpu }) ?? 0) * 60_000) / microUsdPerUsd;
  const repositoryOf = (build: BuildId) => join(stateDirectory, "builds", build, repositoryName);
  const face = createBuildFace({
    store,
    clock,
    news,
    defaults: settings.buildDefaults,
    ring: reports.ring,
    provider: settings.provider,
    usdPerMinute,
    checkAgent: options.checkAgent,
    secrets,
    repositoryOf,
    isRepositoryMissing: (build) => building.gitOf !== undefined && !existsSync(repositoryOf(build)),
    remoteEndOf: (build) => readRemoteEnd(store.notes, build, join(stateDirectory, "builds", build)),
    gitOf: async (build) => await building.gitOf?.(build),
    previews: () => building.previews,
  });
  const opened = parts.move();
  return { store, face, gateway: models.gateway, [Symbol.asyncDispose]: () => opened.disposeAsync() };
}

/** Run tokens outlive the server: agents continue with the next one. */
async function keepSecret(path: string): Promise<string> {
  const kept = await readFile(path, "utf8").catch(() => "");
  if (kept.length === secretCharacters) return kept;
  const secret = randomBytes(secretCharacters / 2).toString("hex");
  await writeFile(path, secret, { mode: 0o600 });
  return secret;
}

const secretCharacters = 64;
