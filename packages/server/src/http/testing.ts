import { mkdtempSync, rmSync } from "node:fs";
import { type IncomingHttpHeaders, request } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import type { BuildId, BuildSettings, Health, Stage, Task } from "@slipway/contract";
import {
  createFleet,
  createTick,
  lockIntent,
  type NewEvent,
  report,
  type Store,
  type Work,
  type WorkItem,
} from "@slipway/engine";
import { openDatabase, openStore } from "@slipway/store";
import { type BuildFaceParts, createBuildFace } from "../faces/builds/builds.ts";
import type { BuildFace } from "../faces/builds/face.ts";
import { createNews } from "../faces/builds/news.ts";
import { generatedChecks, generatedIntent } from "../simulated/generated.ts";
import { openBuildSecrets } from "../work/build-secrets.ts";
import { createApp } from "./app.ts";
import { listenOnSocket } from "./listen.ts";
import type { App } from "./serve.ts";

/** HTTP on a socket over a real store. Builds are driven by turns in this process, one for each ring. */
export interface TestServer extends AsyncDisposable {
  readonly directory: string;
  readonly socketPath: string;
  readonly store: Store;
  readonly builds: BuildFace;
  /** For requests that come by no socket. */
  app(): App;
  /** Work that was asked for and is neither answered nor done. */
  readonly asked: WorkItem[];
  readonly log: string[];
  ask(method: string, path: string, options?: Asking): Promise<Answer>;
  /** Keeps reports and drives the build until all of it is taken in. */
  tell(build: BuildId, ...events: readonly NewEvent[]): Promise<void>;
  /** Ends the HTTP server, as at its stop, and starts it again. */
  restart(): Promise<void>;
  stop(): Promise<void>;
}

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

export interface TestServerOptions {
  /** Stages that are answered at once; the others wait. */
  readonly stages?: readonly Stage[];
  readonly defaults?: Partial<BuildSettings>;
  readonly checkAgent?: BuildFaceParts["checkAgent"];
  readonly models?: Health["models"];
  /** Whether the bell is heard. */
  readonly deaf?: boolean;
  readonly gitOf?: BuildFaceParts["gitOf"];
  readonly previews?: BuildFaceParts["previews"];
}

const by = { holder: "server-1", generation: 1 };

export async function startTestServer(options: TestServerOptions = {}): Promise<TestServer> {
  const {
    stages = ["draft", "lock", "plan"],
    defaults = {},
    models = [],
    deaf = false,
    gitOf = async () => undefined,
    previews = () => undefined,
  } = options;
  const directory = mkdtempSync(join(tmpdir(), "slipway-http-"));
  const database = await openDatabase({ url: `file:${join(directory, "slipway.db")}` });
  const clock = { now: () => Date.now() };
  const store = await openStore(database, clock);
  const news = createNews();
  const asked: WorkItem[] = [];
  const log: string[] = [];
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
      const { over } = await tick(build, by, null);
      news.tell(build);
      const { appliedThrough } = await store.builds.get(build);
      if (over || (await store.events.read(build, appliedThrough, { source: "report" })).length === 0) return;
    }
  };
  let driving = Promise.resolve();
  const ring = (build: BuildId) => {
    if (!deaf) driving = driving.then(() => drive(build));
  };
  const socketPath = join(directory, "server.sock");
  const secrets = openBuildSecrets(join(directory, "builds"));
  const builds = createBuildFace({
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
  return {
    directory,
    socketPath,
    store,
    builds,
    app: () => app(AbortSignal.abort()),
    asked,
    log,
    ask: (method, path, asking) => ask(socketPath, method, path, asking),
    async tell(build, ...events) {
      await store.events.report(build, events);
      ring(build);
      await driving;
    },
    async restart() {
      await stop();
      stop = await listen();
    },
    stop: () => stop(),
    async [Symbol.asyncDispose]() {
      await stop().catch(() => undefined);
      await driving;
      await database[Symbol.asyncDispose]();
      rmSync(directory, { recursive: true });
    },
  };
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

function task(id: string, dependencies: readonly string[], minutes: number): Task {
  return {
    id,
    title: `Make ${id}`,
    description: `Make ${id}`,
    component: "frontend",
    features: ["list"],
    dependencies: [...dependencies],
    expectedFiles: [`src/${id}.ts`],
    estimate: { minutes, usd: 1.5 },
    criteria: [],
  };
}

export const tasks: readonly Task[] = [
  task("setup", [], 10),
  task("list", ["setup"], 30),
  task("store", ["setup"], 20),
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
