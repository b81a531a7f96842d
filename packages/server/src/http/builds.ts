import {
  type BranchId,
  type BuildId,
  branchIdSchema,
  buildIdSchema,
  buildOrders,
  buildsQuerySchema,
  eventsQuerySchema,
  fileQuerySchema,
  filesQuerySchema,
  idempotencyHeader,
  idempotencyKeySchema,
  SlipwayError,
  sequenceSchema,
  setBudgetSchema,
  startBuildSchema,
} from "@slipway/contract";
import { type Context, Hono } from "hono";
import type { BuildFace } from "../faces/builds/face.ts";
import { accept } from "./errors.ts";
import { streamEvents } from "./stream.ts";

/** Whoever reaches the socket is the user that the server runs for. */
const account = "local";

/** `signal`: the server ends. */
export function buildRoutes(builds: BuildFace, signal: AbortSignal): Hono {
  const routes = new Hono();

  routes.post("/", async (context) => {
    const build = await builds.start(account, accept(startBuildSchema, await readJson(context)));
    return context.json(build, 201);
  });
  routes.get("/", async (context) => context.json(await builds.list(accept(buildsQuerySchema, context.req.query()))));

  routes.get("/:id", async (context) => context.json(await builds.get(idOf(context))));
  routes.get("/:id/intent", async (context) => context.json(await builds.intent(idOf(context))));
  routes.patch("/:id/intent", async (context) =>
    context.json(await builds.editIntent(idOf(context), await readJson(context), keyOf(context))),
  );
  routes.post("/:id/lock", async (context) => context.json(await builds.lock(idOf(context))));
  routes.get("/:id/plan", async (context) => context.json(await builds.plan(idOf(context))));
  routes.get("/:id/costs", async (context) => context.json(await builds.costs(idOf(context))));
  routes.get("/:id/merge-queue", async (context) => context.json(await builds.mergeQueue(idOf(context))));
  routes.get("/:id/branches", async (context) => context.json(await builds.branches(idOf(context))));
  routes.delete("/:id/branches/:branch", async (context) =>
    context.json(await builds.discardBranch(idOf(context), branchOf(context))),
  );
  routes.post("/:id/preview", async (context) => context.json(await builds.openPreview(idOf(context))));
  routes.delete("/:id/preview", async (context) => context.json(await builds.closePreview(idOf(context))));
  routes.get("/:id/files", async (context) =>
    context.json(await builds.files(idOf(context), accept(filesQuerySchema, context.req.query()))),
  );
  routes.get("/:id/files/content", async (context) =>
    context.json(await builds.file(idOf(context), accept(fileQuerySchema, context.req.query()))),
  );

  routes.get("/:id/events", async (context) => {
    const build = idOf(context);
    const { after, limit } = accept(eventsQuerySchema, context.req.query());
    if (!context.req.header("accept")?.includes("text/event-stream")) {
      return context.json(await builds.events(build, after, limit));
    }
    const last = context.req.header("last-event-id");
    return await streamEvents(context, builds, {
      build,
      after: last === undefined ? after : accept(sequenceSchema, last),
      signal,
    });
  });

  for (const order of buildOrders) {
    routes.post(`/:id/${order}`, async (context) =>
      context.json(await builds.order(idOf(context), order, keyOf(context))),
    );
  }
  routes.patch("/:id/budget", async (context) => {
    const wanted = accept(setBudgetSchema, await readJson(context));
    return context.json(await builds.setBudget(idOf(context), wanted, keyOf(context)));
  });
  return routes;
}

/** What is no id is no build either. */
function idOf(context: Context): BuildId {
  const id = context.req.param("id") ?? "";
  const read = buildIdSchema.safeParse(id);
  if (read.success) return read.data;
  throw new SlipwayError("build_not_found", `there is no build ${id.slice(0, 64)}`);
}

function branchOf(context: Context): BranchId {
  const id = context.req.param("branch") ?? "";
  const read = branchIdSchema.safeParse(id);
  if (read.success) return read.data;
  throw new SlipwayError("branch_not_found", `there is no branch ${id.slice(0, 64)}`);
}

function keyOf(context: Context): string | undefined {
  return accept(idempotencyKeySchema.optional(), context.req.header(idempotencyHeader));
}

async function readJson(context: Context): Promise<unknown> {
  try {
    return await context.req.json();
  } catch (cause) {
    throw new SlipwayError("invalid_request", "the body is not JSON", { cause });
  }
}
