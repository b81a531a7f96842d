import { request } from "node:http";
import { Readable } from "node:stream";
import type { Transport } from "./transport.ts";

/** HTTP over a unix socket, which `fetch` can not do. */
export function overSocket(socketPath: string): Transport {
  return ({ method, path, headers, body, signal }) =>
    new Promise((resolve, reject) => {
      const outgoing = request({ socketPath, method, path, headers, ...(signal !== undefined && { signal }) });
      outgoing.once("error", reject);
      outgoing.once("response", (message) => {
        resolve(new Response(Readable.toWeb(message) as ReadableStream, { status: message.statusCode ?? 500 }));
      });
      outgoing.end(body);
    });
}
