import { once } from "node:events";
import { rmSync } from "node:fs";
import { connect, type Server, type Socket } from "node:net";

/** Rejects with the system's error. */
export function connectSocket(path: string): Promise<Socket> {
  return new Promise((resolve, reject) => {
    const socket = connect(path);
    socket.once("error", reject);
    socket.once("connect", () => {
      socket.off("error", reject);
      resolve(socket);
    });
  });
}

/** Listens at the path, in place of a stale socket. The caller makes sure that nobody else listens there. */
export async function listenAt(server: Server, path: string, mode: number): Promise<void> {
  rmSync(path, { force: true });
  const listening = once(server, "listening");
  // Binds with the mode: a chmod afterwards would follow a link planted meanwhile.
  const umask = process.umask(0o777 & ~mode);
  try {
    server.listen(path);
  } finally {
    process.umask(umask);
  }
  await listening;
  // A failed accept, for instance without free descriptors, is no reason to stop.
  server.on("error", () => undefined);
}
