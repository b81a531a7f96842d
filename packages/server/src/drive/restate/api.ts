import { once } from "node:events";
import { request as httpRequest, type IncomingMessage, type RequestOptions } from "node:http";
import { request as httpsRequest } from "node:https";
import { text as textOf } from "node:stream/consumers";
import { setTimeout as delay } from "node:timers/promises";
import { type BuildId, buildIdSchema, printable, SlipwayError } from "@slipway/contract";
import { z } from "zod";

/** Where Restate is: `http:`, `https:`, or `unix:` with the path of a socket. */
export interface RestateAddress {
  readonly ingressUrl: string;
  readonly adminUrl: string;
}

/**
 * Restate's HTTP API. Every call is safe to repeat, and is retried while Restate is away or not ready, up to the limit; then
 * it fails with `loop_unavailable`.
 */
export interface RestateApi {
  /** Registers the handlers at this address for their services. */
  register(uri: string): Promise<void>;
  /** The address of the service's handlers; undefined: unknown service. */
  servedAt(service: string): Promise<string | undefined>;
  /** Forgets other addresses of the service, until the signal aborts. */
  forgetOthers(service: string, uri: string, signal: AbortSignal): Promise<void>;
  /** Kills these builds' unfinished invocations in services with this prefix. Returns the builds that had any. */
  kill(builds: readonly BuildId[], servicePrefix: string): Promise<readonly BuildId[]>;
  /** False: unknown service. */
  send(call: DurableCall): Promise<boolean>;
  /** Ignores resolved, gone and unknown awakeables. */
  resolveAwakeable(id: string): Promise<void>;
}

export interface DurableCall {
  readonly service: string;
  readonly key: string;
  readonly handler: string;
  readonly input: unknown;
  readonly idempotencyKey: string;
}

const retryMs = 50;
const mostAtOnce = 32;
const deploymentsSchema = z.object({
  deployments: z.array(
    z.object({ id: z.string(), uri: z.string().optional(), services: z.array(z.object({ name: z.string() })) }),
  ),
});
const serviceSchema = z.object({ deployment_id: z.string() });
const deploymentSchema = z.object({ uri: z.string() });
const rowsSchema = z.object({ rows: z.array(z.object({ id: z.string(), key: buildIdSchema })) });

/** `limitMs` bounds one call with all its retries. */
export function createRestateApi(address: RestateAddress, { limitMs = 30_000 } = {}): RestateApi {
  const inTurn = createTurnstile(mostAtOnce);
  const ask = (request: () => RestateRequest) => inTurn(() => askUntil(request, limitMs));
  const admin = (path: string, options: Partial<RestateRequest> = {}) =>
    ask(() => ({ ...options, url: address.adminUrl, path }));
  const ingress = (path: string, options: Partial<RestateRequest> = {}) =>
    ask(() => ({ ...options, url: address.ingressUrl, path }));

  return {
    async register(uri) {
      await admin("/deployments", { method: "POST", body: { uri, force: true } });
    },
    async servedAt(service) {
      const answer = await admin(`/services/${encodeURIComponent(service)}`, { expected: [404] });
      const id = serviceSchema.safeParse(answer.body).data?.deployment_id;
      if (id === undefined) return undefined;
      const { body } = await admin(`/deployments/${encodeURIComponent(id)}`, { expected: [404] });
      return deploymentSchema.safeParse(body).data?.uri;
    },
    async forgetOthers(service, uri, signal) {
      const { deployments } = deploymentsSchema.parse((await admin("/deployments")).body);
      const others = deployments.filter(
        (each) =>
          each.uri !== undefined && !sameAddress(each.uri, uri) && each.services.every(({ name }) => name === service),
      );
      for (const { id } of others) {
        if (signal.aborted) return;
        await admin(`/deployments/${encodeURIComponent(id)}?force=true`, { method: "DELETE", expected: [404] });
      }
    },
    async kill(builds, servicePrefix) {
      const query = `select id, target_service_key as key from sys_invocation_status
        where target_service_key in (${builds.map((build) => `'${build}'`).join()})
        and target_service_name like '${servicePrefix}%' and status not in ('completed', 'killed')`;
      const { rows } = rowsSchema.parse((await admin("/query", { method: "POST", body: { query } })).body);
      await Promise.all(
        rows.map(({ id }) => admin(`/invocations/${id}/kill`, { method: "PATCH", expected: [404, 409] })),
      );
      return [...new Set(rows.map(({ key }) => key))];
    },
    async send({ service, key, handler, input, idempotencyKey }) {
      const path = `/${[service, key, handler].map(encodeURIComponent).join("/")}/send`;
      const headers = { "idempotency-key": idempotencyKey };
      return (await ingress(path, { method: "POST", body: input, headers, expected: [404] })).status !== 404;
    },
    async resolveAwakeable(id) {
      const path = `/restate/awakeables/${encodeURIComponent(id)}/resolve`;
      await ingress(path, { method: "POST", body: null, expected: [400, 404, 409, 410] });
    },
  };
}

/** Checks once, without retries. Fails with `loop_unavailable`. */
export async function checkHealth({ ingressUrl, adminUrl }: RestateAddress, limitMs: number): Promise<void> {
  const signal = AbortSignal.timeout(limitMs);
  await Promise.all([
    askOnce({ url: ingressUrl, path: "/restate/health" }, signal),
    askOnce({ url: adminUrl, path: "/health" }, signal),
  ]);
}

interface RestateRequest {
  readonly url: string;
  readonly path: string;
  readonly method?: string;
  /** Sent as JSON. */
  readonly body?: unknown;
  readonly headers?: Readonly<Record<string, string>>;
  /** Failure statuses that the caller handles. */
  readonly expected?: readonly number[];
}

interface RestateAnswer {
  readonly status: number;
  readonly body: unknown;
}

/** Lets `most` through at once; the others wait in order. */
function createTurnstile(most: number) {
  const waiting: (() => void)[] = [];
  let inside = 0;
  return async <T>(enter: () => Promise<T>): Promise<T> => {
    if (inside === most) await new Promise<void>((resolve) => waiting.push(resolve));
    else inside += 1;
    try {
      return await enter();
    } finally {
      const next = waiting.shift();
      if (next === undefined) inside -= 1;
      else next();
    }
  };
}

async function askUntil(request: () => RestateRequest, limitMs: number): Promise<RestateAnswer> {
  const signal = AbortSignal.timeout(limitMs);
  for (let last: unknown; ; await delay(retryMs)) {
    try {
      return await askOnce(request(), signal);
    } catch (error) {
      // The last failure says more than the timeout.
      if (signal.aborted) throw last ?? error;
      if (!(error instanceof NotReady)) throw error;
      last = error;
    }
  }
}

/** The same call may work later. */
class NotReady extends SlipwayError {
  constructor(message: string, options?: ErrorOptions) {
    super("loop_unavailable", message, options);
  }
}

/** A refusal with a code is final. While it starts, Restate also refuses without one. */
const refusalSchema = z.object({ restate_code: z.string() });

export async function askOnce(request: RestateRequest, signal: AbortSignal): Promise<RestateAnswer> {
  const { url, path, method = "GET", body, headers, expected = [] } = request;
  const json = body === undefined ? {} : { "content-type": "application/json" };
  const options = { method, signal, headers: { accept: "application/json", ...json, ...headers } };
  let status: number;
  let text: string;
  try {
    const response = await send(url, path, options, body === undefined ? "" : JSON.stringify(body));
    status = response.statusCode ?? 0;
    text = await textOf(response);
  } catch (cause) {
    throw new NotReady(`Restate at ${url} ${signal.aborted ? "does not answer in time" : reasonOf(cause)}`, { cause });
  }
  if ((status >= 200 && status < 300) || expected.includes(status)) return { status, body: parse(text) };
  const told = `Restate at ${url} answers ${method} ${path} with ${status}: ${printable(text).slice(0, 500)}`;
  const isFinal = (status < 500 && status !== 429) || refusalSchema.safeParse(parse(text)).success;
  throw isFinal ? new SlipwayError("loop_unavailable", told) : new NotReady(told);
}

async function send(base: string, path: string, options: RequestOptions, body: string): Promise<IncomingMessage> {
  const { protocol, pathname: socketPath } = new URL(base);
  const request =
    protocol === "unix:"
      ? httpRequest({ ...options, socketPath: decodeURIComponent(socketPath), path })
      : (protocol === "https:" ? httpsRequest : httpRequest)(new URL(path, base), options);
  const [response] = await once(request.end(body), "response");
  return response;
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const { code, message } = error as NodeJS.ErrnoException;
  return `cannot be reached: ${code ?? message}`;
}

export function sameAddress(one: string, other: string): boolean {
  return URL.parse(one)?.href === new URL(other).href;
}
