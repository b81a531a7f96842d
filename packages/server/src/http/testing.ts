import { type IncomingHttpHeaders, request } from "node:http";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import type { BuildId, BuildSettings, Health, Stage, Task } from "@slipway/contract";
import { createFleet, createTick, lockIntent, type NewEvent, report, type Work, type WorkItem } from "@slipway/engine";
import { type BuildFaceParts, createBuildFace } from "../faces/builds/builds.ts";
import { createNews, type News } from "../faces/builds/news.ts";
import { generatedChecks, generatedIntent } from "../simulated/generated.ts";
import { task } from "../testing/plans.ts";
import type { Place } from "../testing/world/place.ts";
import { driver, type StorePart } from "../testing/world/store.ts";
import { openBuildSecrets } from "../work/build-secrets.ts";
import type { RepositoryPart } from "../work/repository/testing.ts";
import { createApp } from "./app.ts";
import { listenOnSocket } from "./listen.ts";

export interface Asking {
  readonly body?: unknown;
  readonly headers?: Readonly<Record<string, string>>;
}

export interface Answer {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  // biome-ignore lint/suspicious/noExplicitAny: what tests look at
  readonly body: any;
}

export interface HttpOptions {
  /** Stages that are answered at once; the others wait. */
  readonly stages?: readonly Stage[];
  readonly defaults?: Partial<BuildSettings>;
  readonly checkAgent?: BuildFaceParts["checkAgent"];
  readonly models?: Health["models"];
  /** Whether the bell is heard. */
  readonly deaf?: boolean;
  /** Of all builds; left out: the one of this world, if it has one. */
  readonly gitOf?: BuildFaceParts["gitOf"];
  readonly previews?: BuildFaceParts["previews"];
}

/** HTTP on a socket. Builds are driven by turns in this process, one for each ring. */
export async function openHttp(
  options: HttpOptions,
  { directory, clock, store, repository }: Place & StorePart & Partial<Pick<RepositoryPart, "repository">>,
  held: AsyncDisposableStack,
) {
  const {
    stages = ["draft", "lock", "plan"],
    defaults = {},
    models = [],
    deaf = false,
    gitOf = async () => repository,
    previews = () => undefined,
  } = options;
  const news = createNews();
  const log: string[] = [];
  const { asked, drive } = driveByTurns({ clock, store, news }, stages);
  let driving = Promise.resolve();
  const ring = (build: BuildId) => {
    if (!deaf) driving = driving.then(() => drive(build));
  };
  const socketPath = join(directory, "server.sock");
  const secrets = openBuildSecrets(join(directory, "builds"));
  const builds = createBuildFace({
    usdPerMinute: () => 0.01,
    store,
    clock,
    news,
    defaults,
    ring,
    settleMs: deaf ? 20 : 60_000,
    provider: "simulated",
    checkAgent: options.checkAgent,
    gitOf,
    previews,
    secrets,
    repositoryOf: (build) => join(directory, build),
  });
  const app = (signal: AbortSignal) =>
    createApp({ builds, models: () => models, version: "0.0.0", log: (line) => log.push(line), signal });
  const listen = async () => {
    const ending = new AbortController();
    const listening = await listenOnSocket(app(ending.signal), socketPath);
    return async () => {
      ending.abort();
      await listening[Symbol.asyncDispose]();
    };
  };
  let stop = await listen();
  held.defer(() => driving);
  held.defer(() => stop().catch(() => undefined));
  return {
    socketPath,
    builds,
    /** For requests that come by no socket. */
    app: () => app(AbortSignal.abort()),
    /** Work that was asked for and is neither answered nor done. */
    asked,
    log,
    ask: (method: string, path: string, asking?: Asking) => ask(socketPath, method, path, asking),
    /** Keeps reports and drives the build until all of it is taken in. */
    async tell(build: BuildId, ...events: readonly NewEvent[]): Promise<void> {
      await store.events.report(build, events);
      ring(build);
      await driving;
    },
    /** Ends the HTTP server, as at its stop, and starts it again. */
    async restart(): Promise<void> {
      await stop();
      stop = await listen();
    },
    stop: () => stop(),
  };
}

/** Turns of builds, one after the other. `asked`: work that is neither answered nor done. */
function driveByTurns(
  { clock, store, news }: Pick<StorePart, "store"> & Pick<Place, "clock"> & { readonly news: News },
  stages: readonly Stage[],
) {
  const asked: WorkItem[] = [];
  const work: Work = {
    async carryOut({ id, request: wanted }, items) {
      for (const item of items) {
        if (item.type !== "stage" || !stages.includes(item.stage)) asked.push(item);
        else await store.events.report(id, [await answerTo(item.stage, wanted)]);
      }
    },
    reattach: async () => {},
    heardAtMs: () => undefined,
  };
  const tick = createTick({ store, work, fleet: createFleet(100, () => {}), clock });
  /** Until a turn has nothing more to take in. */
  const drive = async (build: BuildId) => {
    for (;;) {
      const { over } = await tick(build, driver, null);
      news.tell(build);
      const { appliedThrough } = await store.builds.get(build);
      if (over || (await store.events.read(build, appliedThrough, { source: "report" })).length === 0) return;
    }
  };
  return { asked, drive };
}

async function answerTo(stage: Stage, wanted: string): Promise<NewEvent> {
  const open = generatedIntent({ request: wanted });
  const locked = await lockIntent(open, Date.now());
  switch (stage) {
    case "draft":
      return report("intent.drafted", "intent.drafted", { open, start: { mode: "new" } });
    case "lock":
      return report("intent.locked", "intent.locked", { locked, checks: generatedChecks(locked.hash) });
    case "plan":
      return report("plan.made", "plan.made", { plan: { mode: "new", intentHash: locked.hash, tasks: [...tasks] } });
  }
}

function taskOf(id: string, dependencies: string[], minutes: number): Task {
  const words = { title: `Make ${id}`, description: `Make ${id}`, component: "frontend", features: ["list"] };
  return task(id, dependencies, { ...words, expectedFiles: [`src/${id}.ts`], estimate: { minutes, usd: 1.5 } });
}

export const tasks: readonly Task[] = [
  taskOf("setup", [], 10),
  taskOf("list", ["setup"], 30),
  taskOf("store", ["setup"], 20),
];

async function ask(
  socketPath: string,
  method: string,
  path: string,
  { body, headers = {} }: Asking = {},
): Promise<Answer> {
  const { promise, resolve, reject } = Promise.withResolvers<Answer>();
  const outgoing = request({ socketPath, method, path, headers, agent: false }, async (message) => {
    const said = await text(message);
    resolve({ status: message.statusCode ?? 0, headers: message.headers, body: parsed(said) });
  });
  outgoing.once("error", reject);
  outgoing.end(typeof body === "string" || body === undefined ? body : JSON.stringify(body));
  return await promise;
}

function parsed(said: string): unknown {
  try {
    return JSON.parse(said);
  } catch {
    return said;
  }
}
