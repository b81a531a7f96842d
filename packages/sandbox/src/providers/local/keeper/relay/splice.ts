import { Socket } from "node:net";
import type { Duplex } from "node:stream";

/**
 * Carries bytes both ways until both sides have ended. An end of one side is passed on and the other direction goes on; a
 * failure of one ends both. The pair is cut when nothing moves for `idleMs`.
 */
export function splice(client: Duplex, upstream: Duplex, idleMs: number): void {
  const cut = () => {
    client.destroy();
    upstream.destroy();
  };
  const timer = setTimeout(cut, idleMs).unref();
  let open = 2;
  for (const side of [client, upstream]) {
    side.on("error", cut);
    side.on("data", () => timer.refresh());
    side.on("drain", () => timer.refresh());
    side.once("close", () => {
      open -= 1;
      if (open === 0) clearTimeout(timer);
      // After a clean end the other side still has to flush what it was given.
      if (!side.readableEnded || !side.writableFinished) cut();
    });
    // A timeout of the protocol before the splice no longer holds.
    if (side instanceof Socket) side.setTimeout(0);
  }
  client.pipe(upstream);
  upstream.pipe(client);
  if (client.destroyed || upstream.destroyed) cut();
}
