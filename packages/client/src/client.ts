import {
  idempotencyHeader,
  type ParametersOf,
  parametersOf,
  type Route,
  routes,
  SlipwayError,
} from "@slipway/contract";
import type { z } from "zod";
import { type FollowOptions, followEvents } from "./events.ts";
import { failureOf, overNetwork, send, type Transport } from "./transport.ts";

/** A server of this machine, or one on the network. */
export type ServerAddress = { readonly socketPath: string } | { readonly url: string; readonly token: string };

export interface CallOptions {
  readonly signal?: AbortSignal | undefined;
  /** An order that is sent again under its key counts once. */
  readonly key?: string | undefined;
}

/**
 * A method for each route, by group: it takes the parameters of the path, the body or the query, and options. What fails is a
 * `SlipwayError` with the server's code, or `server_unavailable`.
 */
export type Client = {
  readonly [Group in keyof typeof routes]: {
    readonly [Name in keyof (typeof routes)[Group]]: Call<(typeof routes)[Group][Name]>;
  };
};
export type BuildsClient = Client["builds"];

/** A stream has every event after the given one, once and in order, until its end. A lost connection is made anew. */
type Call<R> = R extends { path: infer Path extends string; events: infer S extends z.ZodType }
  ? (...given: [...ParametersOf<Path>, options?: FollowOptions]) => AsyncIterable<z.output<S>>
  : R extends { path: infer Path extends string; output: infer S extends z.ZodType }
    ? (...given: [...ParametersOf<Path>, ...Content<R>, options?: CallOptions]) => Promise<z.output<S>>
    : never;

type Content<R> = R extends { body: infer S extends z.ZodType }
  ? [body: z.input<S>]
  : R extends { query: infer S extends z.ZodType }
    ? Partial<z.output<S>> extends Query<S>
      ? [query?: Query<S>]
      : [query: Query<S>]
    : [];

/** As the server reads it; what it has a default for may be left out. */
type Query<S extends z.ZodType> = Partial<z.output<S>> &
  Pick<z.output<S>, RequiredKeys<z.input<S>> & keyof z.output<S>>;
type RequiredKeys<T> = { [K in keyof T]-?: undefined extends T[K] ? never : K }[keyof T];

export function createClient(address: ServerAddress): Client {
  const transport = transportTo(address);
  const groups = Object.entries(routes).map(([group, members]) => [
    group,
    Object.fromEntries(Object.entries<Route>(members).map(([name, route]) => [name, method(transport, route)])),
  ]);
  return Object.fromEntries(groups) as Client;
}

/** Node's own modules are loaded where a socket is used: the rest runs in a browser. */
function transportTo(address: ServerAddress): Transport {
  if ("url" in address) return overNetwork(address.url, address.token);
  const loaded = import("./socket.ts").then(({ overSocket }) => overSocket(address.socketPath));
  return async (request) => (await loaded)(request);
}

function method(transport: Transport, route: Route) {
  const names = parametersOf(route.path);
  const hasContent = route.events === undefined && (route.body ?? route.query) !== undefined;
  return (...given: unknown[]) => {
    const path = names.reduce(
      (made, name, i) => made.replace(`:${name}`, encodeURIComponent(String(given[i]))),
      route.path,
    );
    const rest = given.slice(names.length);
    const content = hasContent ? rest.shift() : undefined;
    const options: FollowOptions & CallOptions = rest[0] ?? {};
    if (route.events !== undefined)
      return followEvents(transport, path, route.events as z.ZodType<{ sequence: number }>, options);
    return call(transport, { route, path, content, ...options });
  };
}

interface Calling extends CallOptions {
  readonly route: Route;
  readonly path: string;
  readonly content: unknown;
}

async function call(transport: Transport, { route, path, content, signal, key }: Calling): Promise<unknown> {
  const { method, output } = route;
  const headers = {
    accept: "application/json",
    ...(route.body !== undefined && { "content-type": "application/json" }),
    ...(key !== undefined && { [idempotencyHeader]: key }),
  };
  const body = route.body === undefined ? undefined : JSON.stringify(content);
  const asked = route.query === undefined ? path : `${path}${queryOf(content ?? {})}`;
  const answer = await send(transport, { method, path: asked, headers, body, signal });
  const value = await answer.json().catch((cause) => {
    throw failureOf(cause, signal);
  });
  const read = output?.safeParse(value);
  if (read?.success) return read.data;
  const message = `Unknown answer from the server to ${method} ${path}. Do client and server versions match?`;
  throw new SlipwayError("internal", message, { cause: read?.error });
}

function queryOf(fields: object): string {
  const query = new URLSearchParams();
  // A list is written with commas; an empty one asks for nothing.
  for (const [name, value] of Object.entries(fields)) if (String(value ?? "") !== "") query.set(name, String(value));
  return query.size === 0 ? "" : `?${query}`;
}
