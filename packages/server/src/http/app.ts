import { apiLimits, type Health, SlipwayError } from "@slipway/contract";
import { Hono } from "hono";
import { bodyLimit } from "hono/body-limit";
import type { BuildFace } from "../faces/builds/face.ts";
import { buildRoutes } from "./builds.ts";
import { answerError } from "./errors.ts";

export interface AppParts {
  readonly builds: BuildFace;
  /** How the providers of models do. */
  models(): Health["models"];
  readonly version: string;
  log(line: string): void;
  /** Aborts when the server ends: streams end with it. */
  readonly signal: AbortSignal;
}

export function createApp({ builds, models, version, log, signal }: AppParts): Hono {
  const app = new Hono();
  const tooLarge = () => {
    throw new SlipwayError("too_large", `a body has at most ${apiLimits.maxBodyBytes} bytes`);
  };
  app.use(bodyLimit({ maxSize: apiLimits.maxBodyBytes, onError: tooLarge }));
  app.get("/v1/health", (context) =>
    context.json({ status: "ok", version, pid: process.pid, models: models() } satisfies Health),
  );
  app.route("/v1/builds", buildRoutes(builds, signal));
  app.notFound(({ req }) => {
    throw new SlipwayError("route_not_found", `there is no ${req.method} ${req.path.slice(0, 200)}`);
  });
  app.onError((error, context) => answerError(error, context, log));
  return app;
}
