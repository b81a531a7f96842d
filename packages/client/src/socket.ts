import { request } from "node:http";
import { Readable } from "node:stream";
import type { Transport } from "./transport.ts";

/** HTTP over a unix socket, which `fetch` can not do. */
export function overSocket(socketPath: string): Transport {
  return ({ method, path, headers, body, signal }) =>
    new Promise((resolve, reject) => {
      // A connection that is kept for the next call may lead to a server that has ended meanwhile.
      const options = { socketPath, method, path, headers, agent: false, ...(signal !== undefined && { signal }) };
      const outgoing = request(options);
      outgoing.once("error", reject);
      outgoing.once("response", (message) => {
        resolve(new Response(Readable.toWeb(message) as ReadableStream, { status: message.statusCode ?? 500 }));
      });
      outgoing.end(body);
    });
}
