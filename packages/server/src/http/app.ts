import { type Health, routes, SlipwayError } from "@slipway/contract";
import { Hono } from "hono";
import type { BuildFace } from "../faces/builds/face.ts";
import { answerError } from "./errors.ts";
import { type App, type Bindings, serve } from "./serve.ts";

export interface AppParts {
  readonly builds: BuildFace;
  /** How the providers of models do. */
  models(): Health["models"];
  readonly provider?: Health["provider"];
  readonly version: string;
  log(line: string): void;
  /** Aborts when the server ends: streams end with it. */
  readonly signal: AbortSignal;
}

export function createApp({ builds, models, provider, version, log, signal }: AppParts): App {
  const app = new Hono<{ Bindings: Bindings }>();
  const health = async (): Promise<Health> => ({ status: "ok", version, pid: process.pid, models: models(), provider });
  serve(app, routes.server, { health }, signal);
  serve(app, routes.builds, builds, signal);
  app.notFound(({ req }) => {
    throw new SlipwayError("route_not_found", `there is no ${req.method} ${req.path.slice(0, 200)}`);
  });
  app.onError((error, context) => answerError(error, context, log));
  return app;
}
