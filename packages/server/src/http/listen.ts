import { once } from "node:events";
import { rmSync } from "node:fs";
import { createAdaptorServer } from "@hono/node-server";
import { SlipwayError } from "@slipway/contract";
import { localUser } from "../faces/principal.ts";
import type { App } from "./serve.ts";

/** Serves on a socket that its user alone can reach, and who asks is that user. The caller makes sure that no other server has it. */
export async function listenOnSocket(app: Pick<App, "fetch">, path: string): Promise<AsyncDisposable> {
  const server = createAdaptorServer({ fetch: (request) => app.fetch(request, { principal: localUser }) });
  rmSync(path, { force: true });
  // Whoever can write to the socket rules the builds: it is the owner's alone from the start, whatever the umask is.
  const umask = process.umask(0o177);
  server.listen(path);
  process.umask(umask);
  await once(server, "listening").catch((cause) => {
    throw new SlipwayError("invalid_settings", `cannot listen on ${path}: ${cause.message}`, { cause });
  });
  // A failed accept, for instance without free descriptors, is no reason to stop.
  server.on("error", () => undefined);
  return {
    async [Symbol.asyncDispose]() {
      const closed = once(server, "close");
      server.close();
      if ("closeAllConnections" in server) server.closeAllConnections();
      await closed;
    },
  };
}
