import { createHash } from "node:crypto";
import { once } from "node:events";
import { createServer } from "node:net";

/**
 * Holds what a path stands for, for one purpose; null when a process holds it already, be it this one. An abstract socket is a
 * lock that the kernel frees with its holder, however that ends.
 */
export async function acquireProcessLock(purpose: string, path: string): Promise<AsyncDisposable | null> {
  const name = createHash("sha256").update(`${process.getuid?.()}:${path}`).digest("hex");
  const holder = createServer((socket) => socket.destroy());
  const listening = once(holder, "listening");
  holder.listen(`\0slipway-${purpose}-${name}`);
  try {
    await listening;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "EADDRINUSE") return null;
    throw error;
  }
  return holder;
}
