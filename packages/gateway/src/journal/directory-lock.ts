import { createHash } from "node:crypto";
import { realpathSync } from "node:fs";
import { createServer } from "node:net";
import process from "node:process";

/** Locks by an abstract socket, which the kernel frees when its holder ends. Undefined: already locked. */
export function lockDirectory(directory: string): Promise<(() => Promise<void>) | undefined> {
  const name = createHash("sha256")
    .update(`${process.getuid?.()}:${realpathSync(directory)}`)
    .digest("hex");
  const holder = createServer((socket) => socket.destroy());
  return new Promise((resolve, reject) => {
    holder.once("error", (error: NodeJS.ErrnoException) =>
      error.code === "EADDRINUSE" ? resolve(undefined) : reject(error),
    );
    holder.listen(`\0slipway-journal-${name}`, () => {
      holder.unref();
      resolve(() => new Promise((closed) => holder.close(() => closed())));
    });
  });
}
