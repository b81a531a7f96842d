import {
  apiLimits,
  idempotencyHeader,
  idempotencyKeySchema,
  parametersOf,
  type Route,
  type RouteParameter,
  routeParameters,
  SlipwayError,
  sequenceSchema,
} from "@slipway/contract";
import type { Context, Hono } from "hono";
import { bodyLimit } from "hono/body-limit";
import { z } from "zod";
import type { Principal } from "../faces/principal.ts";
import { acceptAll } from "./errors.ts";
import { streamEvents } from "./stream.ts";

/** What the listener says of a request. Without a principal, nobody knows who asks. */
export interface Bindings {
  readonly principal?: Principal;
}
export type App = Hono<{ Bindings: Bindings }>;

// biome-ignore lint/suspicious/noExplicitAny: `Face` says what each method takes
type Methods = Readonly<Record<string, (by: Principal, ...given: any[]) => Promise<any>>>;

/** Serves each route of a group by the face's method of its name. `signal`: the server ends. */
export function serve(app: App, group: Readonly<Record<string, Route>>, face: Methods, signal: AbortSignal): void {
  for (const [name, route] of Object.entries(group)) {
    app.on(route.method, route.path, limitBody, async (context, next) => {
      if (route.events !== undefined && !context.req.header("accept")?.includes("text/event-stream")) return next();
      const by = context.env.principal;
      if (by === undefined) throw new SlipwayError("unauthenticated", "the server does not know who asks");
      const ids = parametersOf(route.path).map((parameter) => idOf(context, parameter));
      const { content, key } = await readRequest(context, route);
      // Looked up at each call, as the face may be watched.
      const method = face[name] as Methods[string];
      if (route.events === undefined) {
        return context.json(await method(by, ...ids, ...content, key), route.status ?? 200);
      }
      return await streamEvents(context, (gone) => method(by, ...ids, ...content, gone), signal);
    });
  }
}

const limitBody = bodyLimit({
  maxSize: apiLimits.maxBodyBytes,
  onError: () => {
    throw new SlipwayError("too_large", `a body has at most ${apiLimits.maxBodyBytes} bytes`);
  },
});

const jsonSchema = z.string().transform((text, { addIssue }): unknown => {
  try {
    return JSON.parse(text);
  } catch {
    addIssue("the body is not JSON");
    return z.NEVER;
  }
});

/** What is no id is nothing that is there either. */
function idOf({ req }: Context, parameter: RouteParameter): unknown {
  const id = req.param(parameter) ?? "";
  const { schema, missing } = routeParameters[parameter];
  const read = schema.safeParse(id);
  if (read.success) return read.data;
  throw new SlipwayError(missing, `there is no ${parameter} ${id.slice(0, 64)}`);
}

/** Names all that is wrong with the query, the body and the headers at once. */
async function readRequest({ req }: Context, { query, body, events }: Route) {
  const [asked, sent, key, last] = acceptAll(
    [query, req.query()],
    [body && jsonSchema.pipe(body), body && (await req.text())],
    [idempotencyKeySchema.optional(), req.header(idempotencyHeader)],
    [events && sequenceSchema.optional(), req.header("last-event-id")],
  );
  const from = last === undefined ? asked : { ...(asked as object), after: last };
  return { content: [from, sent].filter((part) => part !== undefined), key };
}
