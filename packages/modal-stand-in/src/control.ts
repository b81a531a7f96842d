import { randomBytes, timingSafeEqual } from "node:crypto";
import { createServer, type IncomingMessage } from "node:http";
import { json } from "node:stream/consumers";
import { Status } from "nice-grpc";
import { listenOnLoopback } from "./front.ts";
import type { StatusName } from "./refuse.ts";
import type { ModalStandIn } from "./stand-in.ts";

/** Orders over HTTP, for programs that are not in the stand-in's process. */
export interface Control extends AsyncDisposable {
  readonly url: string;
  /** To be sent as `authorization: Bearer <token>`. */
  readonly token: string;
}

type Body = Readonly<Record<string, unknown>>;
class Mistake extends Error {}

export async function openControl(standIn: ModalStandIn, port = 0): Promise<Control> {
  const token = randomBytes(24).toString("base64url");
  const routes = routesOf(standIn);
  const server = createServer(async (request, response) => {
    const answer = (code: number, value: unknown) => {
      response.writeHead(code, { "content-type": "application/json" }).end(`${JSON.stringify(value ?? {})}\n`);
    };
    try {
      if (!hasToken(request, token)) return answer(401, { message: "Send the control token as a bearer token." });
      const route = routes[`${request.method} ${request.url}`];
      if (route === undefined) return answer(404, { message: `Known: ${Object.keys(routes).join(", ")}.` });
      answer(200, await route(request.method === "GET" ? {} : await bodyOf(request)));
    } catch (error) {
      answer(error instanceof Mistake ? 400 : 500, { message: (error as Error).message });
    }
  });
  const listening = await listenOnLoopback(server, port);
  return {
    url: `http://127.0.0.1:${listening}`,
    token,
    async [Symbol.asyncDispose]() {
      const closed = new Promise((resolve) => server.close(resolve));
      server.closeAllConnections();
      await closed;
    },
  };
}

type Route = (body: Body) => unknown;

function routesOf({ faults, clock, accounting, calls, running, addSecret }: ModalStandIn): Record<string, Route> {
  return {
    "POST /faults/refuse": (body) =>
      faults.refuse(text(body, "method"), {
        code: statusName(body),
        ...(body["message"] !== undefined && { message: text(body, "message") }),
        ...(body["times"] !== undefined && { times: number(body, "times") }),
        ...(body["retryAfterSeconds"] !== undefined && { retryAfterSeconds: number(body, "retryAfterSeconds") }),
      }),
    "POST /faults/cut": (body) =>
      faults.cut(text(body, "method"), oneOf(body, "when", ["before", "after"]), number(body, "times", 1)),
    "POST /faults/cut-now": () => faults.cutNow(),
    "POST /faults/cut-tunnels": (body) =>
      faults.cutTunnels(body["sandboxId"] === undefined ? undefined : text(body, "sandboxId")),
    "POST /faults/stall-tunnels": (body) => faults.stallTunnels(body["stalled"] !== false),
    "POST /faults/latency": (body) =>
      faults.setLatency({ callMs: number(body, "callMs", 0), tunnelMs: number(body, "tunnelMs", 0) }),
    "POST /faults/slow-builds": (body) => faults.slowBuilds(number(body, "byMs")),
    "POST /faults/revoke-tokens": () => faults.revokeTokens(),
    "POST /faults/token-lifetime": (body) =>
      faults.setTokenLifetime(body["seconds"] === null ? null : number(body, "seconds")),
    "POST /faults/vanish": (body) =>
      faults.vanish(text(body, "sandboxId"), oneOf(body, "how", ["forgotten", "failed"] as const, "forgotten")),
    "POST /faults/clear": () => faults.clear(),
    "POST /clock/advance": (body) => clock.advance(number(body, "byMs")),
    "POST /secrets": (body) => addSecret(text(body, "name"), variables(body), text(body, "environment", "main")),
    "GET /running": () => running(),
    "GET /calls": () => Object.fromEntries(calls),
    "GET /usage": () => ({ sandboxes: accounting.usage(), total: accounting.total(), prices: accounting.prices }),
  };
}

function hasToken({ headers }: IncomingMessage, token: string): boolean {
  const [given, expected] = [Buffer.from(headers.authorization ?? ""), Buffer.from(`Bearer ${token}`)];
  return given.length === expected.length && timingSafeEqual(given, expected);
}

const longestBody = 64 * 1024;

async function bodyOf(request: IncomingMessage): Promise<Body> {
  const { "content-length": length = "0", "transfer-encoding": chunked } = request.headers;
  if (chunked !== undefined || Number(length) > longestBody)
    throw new Mistake(`Send a body of at most ${longestBody} bytes, with its length.`);
  if (Number(length) === 0) return {};
  const body: unknown = await json(request).catch(() => null);
  if (typeof body !== "object" || body === null) throw new Mistake("The body is not a JSON object.");
  return body as Body;
}

function text(body: Body, field: string, usual?: string): string {
  const value = body[field] ?? usual;
  if (typeof value !== "string") throw new Mistake(`${field}: expected a text.`);
  return value;
}

function number(body: Body, field: string, usual?: number): number {
  const value = body[field] ?? usual;
  if (typeof value !== "number" || !Number.isFinite(value) || value < 0)
    throw new Mistake(`${field}: expected a number from 0 on.`);
  return value;
}

function oneOf<T extends string>(body: Body, field: string, values: readonly T[], usual?: NoInfer<T>): T {
  const value = values.find((one) => one === (body[field] ?? usual));
  if (value === undefined) throw new Mistake(`${field}: expected ${values.join(" or ")}.`);
  return value;
}

function statusName(body: Body): StatusName {
  const name = text(body, "code");
  if (typeof Status[name as StatusName] !== "number" || name === "OK")
    throw new Mistake("code: expected the name of a gRPC status, such as UNAVAILABLE.");
  return name as StatusName;
}

function variables(body: Body): Record<string, string> {
  const given = body["variables"];
  if (typeof given !== "object" || given === null || !Object.values(given).every((one) => typeof one === "string"))
    throw new Mistake("variables: expected an object of texts.");
  return given as Record<string, string>;
}
