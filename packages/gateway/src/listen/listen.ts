import { once } from "node:events";
import { rmSync } from "node:fs";
import type { Server } from "node:http";
import process from "node:process";
import { SlipwayError } from "@slipway/contract";

export type ListenAddress = { readonly path: string } | { readonly host: string; readonly port: number };

export interface Listener {
  /** With the port that was taken, when port 0 was asked for. */
  readonly address: ListenAddress;
  close(): Promise<void>;
}

export async function listenOn(server: Server, address: ListenAddress): Promise<Listener> {
  // A socket that a killed gateway has left; the ledger's lock keeps a living one away.
  if ("path" in address && !address.path.startsWith("\0")) rmSync(address.path, { force: true });
  // Whoever can write to the socket has the models: it is the owner's alone from the start, whatever the umask is.
  const umask = "path" in address ? process.umask(0o177) : undefined;
  try {
    server.listen(address);
  } finally {
    if (umask !== undefined) process.umask(umask);
  }
  await once(server, "listening").catch((cause) => {
    throw new SlipwayError("provider_unavailable", `the gateway can not listen: ${cause.message}`, { cause });
  });
  // A failed accept, for instance without free descriptors, is no reason to stop.
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
