import { createHash } from "node:crypto";
import { once } from "node:events";
import { createServer } from "node:net";

/**
 * Locks a path for one purpose; null when any process, even this one, holds the lock. The lock is an abstract socket,
 * which the kernel frees with its holder, however that ends.
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
