import { once } from "node:events";
import { rmSync } from "node:fs";
import type { Server } from "node:http";
import process from "node:process";
import { SlipwayError } from "@slipway/contract";

export type ListenAddress = { readonly path: string } | { readonly host: string; readonly port: number };

export interface Listener {
  /** With port 0, the port that was assigned. */
  readonly address: ListenAddress;
  close(): Promise<void>;
}

export async function listenOn(server: Server, address: ListenAddress): Promise<Listener> {
  // A killed gateway leaves its socket behind. The ledger's lock rules out a live one.
  if ("path" in address && !address.path.startsWith("\0")) rmSync(address.path, { force: true });
  // Whoever can write to the socket can use the models: restrict it to the owner from the start, whatever the umask.
  const umask = "path" in address ? process.umask(0o177) : undefined;
  try {
    server.listen(address);
  } finally {
    if (umask !== undefined) process.umask(umask);
  }
  await once(server, "listening").catch((cause) => {
    throw new SlipwayError("provider_unavailable", `the gateway cannot listen: ${cause.message}`, { cause });
  });
  // A failed accept, for instance for lack of descriptors, must not stop the server.
  server.on("error", () => undefined);
  const bound = server.address();
  const port = typeof bound === "object" && bound !== null ? bound.port : undefined;
  return {
    address: "path" in address || port === undefined ? address : { host: address.host, port },
    async close() {
      if (!server.listening) return;
      const closed = once(server, "close");
      server.close();
      server.closeAllConnections();
      await closed;
    },
  };
}
