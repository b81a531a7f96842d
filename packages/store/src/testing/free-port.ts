import { once } from "node:events";
import { createServer } from "node:net";

/** Of the loopback. Another process may take it before the caller does. */
export async function freePort(): Promise<number> {
  const listener = createServer().listen(0, "127.0.0.1");
  await once(listener, "listening");
  const address = listener.address();
  listener.close();
  await once(listener, "close");
  if (address === null || typeof address === "string") throw new Error("no port");
  return address.port;
}
