import { Socket } from "node:net";
import type { Duplex } from "node:stream";

/**
 * Carries bytes both ways until both sides have ended. Passes on the end of one side while the other direction
 * continues; a failure of one side cuts both, as does `idleMs` without traffic.
 */
export function splice(client: Duplex, upstream: Duplex, idleMs?: number): void {
  const cut = () => {
    client.destroy();
    upstream.destroy();
  };
  const timer = idleMs === undefined ? undefined : setTimeout(cut, idleMs).unref();
  let open = 2;
  for (const side of [client, upstream]) {
    side.on("error", cut);
    side.on("data", () => timer?.refresh());
    side.on("drain", () => timer?.refresh());
    side.once("close", () => {
      open -= 1;
      if (open === 0) clearTimeout(timer);
      // After a clean end the other side may still flush.
      if (!side.readableEnded || !side.writableFinished) cut();
    });
    // Clears the timeout of the earlier protocol.
    if (side instanceof Socket) side.setTimeout(0);
  }
  client.pipe(upstream);
  upstream.pipe(client);
  if (client.destroyed || upstream.destroyed) cut();
}
