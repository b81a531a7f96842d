import { EventEmitter, once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { request as httpRequest } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type ModelRole, modelRoles, newId, type RunTaskInput } from "@slipway/contract";
import { createGateway, type Gateway, type GatewayLogLine, type OpenRun, openRunLog } from "../index.ts";
import { createMemoryLedger } from "../journal/ledger.ts";
import type { Clock, Ledger } from "../ports/ports.ts";
import type { Endpoint } from "../settings/endpoints.ts";
import { readPrices } from "../settings/prices.ts";
import type { GatewaySettings } from "../settings/settings.ts";
import { startTestUpstream, type TestUpstream } from "./upstream.ts";

export const testKey = "sk-test-5e1f0c3a9b7d";
export const testTask: RunTaskInput = { agent: "builtin", prompt: "Do it.", model: "build" };

/** Quick to give up and quick to try again. */
export const testTimeouts = { connectMs: 20_000, firstByteMs: 20_000, idleMs: 20_000, totalMs: 60_000 };
const testRetries = { tries: 4, baseMs: 1, maxMs: 5, maxRetryAfterMs: 20 };

export interface TestGateway extends AsyncDisposable {
  readonly gateway: Gateway;
  readonly upstream: TestUpstream;
  readonly run: OpenRun;
  readonly ledger: Ledger;
  readonly lines: readonly GatewayLogLine[];
  /** So many requests are settled and logged. */
  settled(count?: number): Promise<void>;
  /** Of a listener on loopback. */
  readonly url: string;
  post(path: string, body: unknown, options?: PostOptions): Promise<Posted>;
}

export interface PostOptions {
  readonly token?: string;
  readonly headers?: Record<string, string>;
  readonly signal?: AbortSignal;
  readonly socketPath?: string;
  /** Takes a breath after each chunk. */
  readonly slow?: boolean;
  onData?(text: string): void;
}

/** What a client saw. `broken`: the connection was dropped before the end of the response. */
export interface Posted {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly text: string;
  readonly broken: boolean;
}

export interface TestGatewayOptions {
  readonly dialects?: Endpoint["dialects"];
  /** Changes of the one endpoint. */
  readonly endpoint?: Partial<Endpoint>;
  readonly settings?: Partial<GatewaySettings>;
  readonly budgetMicroUsd?: number;
  readonly roles?: readonly ModelRole[];
  readonly ledger?: Ledger;
  readonly clock?: Clock;
}

/** A gateway with one endpoint, one run and a listener. */
export async function startTestGateway(options: TestGatewayOptions = {}): Promise<TestGateway> {
  await using parts = new AsyncDisposableStack();
  const directory = await mkdtemp(join(tmpdir(), "slipway-gateway-"));
  parts.defer(() => rm(directory, { recursive: true }));
  const upstream = parts.use(await startTestUpstream());
  const lines: GatewayLogLine[] = [];
  const logged = new EventEmitter();
  const ledger = options.ledger ?? createMemoryLedger();
  const usual = testSettings(upstream.baseUrl, options.dialects);
  const endpoints = usual.endpoints.map((endpoint) => ({ ...endpoint, ...options.endpoint }));
  const settings = { ...usual, endpoints, ...options.settings };
  const defects: unknown[] = [];
  const gateway = createGateway({
    settings,
    ledger,
    log: await openRunLog(directory),
    secret: "a secret of the tests",
    logger(line) {
      lines.push(line);
      logged.emit("line");
    },
    onDefect: (error) => defects.push(error),
    ...(options.clock && { clock: options.clock }),
  });
  parts.defer(async () => {
    await gateway[Symbol.asyncDispose]();
    if (defects.length > 0) throw new AggregateError(defects, "the gateway has defects");
  });
  const { roles = ["build"], budgetMicroUsd = 10_000_000 } = options;
  const run = parts.use(await gateway.openRun({ id: newId("run"), roles, budgetMicroUsd, task: testTask }));
  const { address } = await gateway.listen({ host: "127.0.0.1", port: 0 });
  const url = "port" in address ? `http://127.0.0.1:${address.port}` : "";
  const held = parts.move();
  return {
    gateway,
    upstream,
    run,
    ledger,
    lines,
    url,
    async settled(count = 1) {
      while (lines.length < count) await once(logged, "line");
    },
    post: (path, body, wanted = {}) => post(`${url}${path}`, body, { token: run.token, ...wanted }),
    [Symbol.asyncDispose]: () => held.disposeAsync(),
  };
}

export function testSettings(baseUrl: string, dialects: Endpoint["dialects"] = ["anthropic"]): GatewaySettings {
  const models = Object.fromEntries(modelRoles.map((role) => [role, `test/${role}-model`]));
  const rates = { input: 3, output: 15, cacheRead: 0.3, cacheWrite: 3.75 };
  const price = { ...rates, maxOutputTokens: 8000, hiddenThinking: "asked" } as const;
  return {
    models: models as GatewaySettings["models"],
    endpoints: [{ provider: "test", baseUrl, dialects, key: testKey, keyVariable: "TEST_API_KEY" }],
    prices: new Map([...readPrices().models, ["test/*", price]]),
    computePrices: {},
    timeouts: testTimeouts,
    retries: testRetries,
    cassettes: undefined,
    logPrompts: false,
  };
}

export function post(url: string, body: unknown, options: PostOptions = {}): Promise<Posted> {
  const { promise, resolve, reject } = Promise.withResolvers<Posted>();
  const authorization = options.token === undefined ? {} : { authorization: `Bearer ${options.token}` };
  const request = httpRequest(url, {
    method: "POST",
    headers: { "content-type": "application/json", ...authorization, ...options.headers },
    ...(options.signal && { signal: options.signal }),
    ...(options.socketPath && { socketPath: options.socketPath }),
  });
  request.once("error", reject);
  request.once("response", (response) => {
    let text = "";
    response.setEncoding("utf8");
    response.on("data", (chunk: string) => {
      text += chunk;
      options.onData?.(text);
      if (options.slow !== true) return;
      response.pause();
      setImmediate(() => response.resume());
    });
    response.on("error", () => {});
    response.once("close", () => {
      resolve({ status: response.statusCode ?? 0, headers: response.headers, text, broken: !response.complete });
    });
  });
  request.end(typeof body === "string" ? body : JSON.stringify(body));
  return promise;
}

export function ask(changes: Record<string, unknown> = {}): Record<string, unknown> {
  const messages = [{ role: "user", content: "Say hello." }];
  return { model: "build", max_tokens: 1000, stream: true, messages, ...changes };
}
