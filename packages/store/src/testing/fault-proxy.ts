import { once } from "node:events";
import { createServer, type IncomingMessage, request, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";

/** What happens to a call: its number counts from 1. */
export type Fault = "none" | "slow" | "error" | "hang" | "cut-request" | "cut-answer" | "garbage";
export type Faults = (call: { readonly number: number; readonly method: string; readonly path: string }) => Fault;

export interface FaultProxy extends AsyncDisposable {
  readonly endpoint: string;
  readonly calls: readonly string[];
  set(faults: Faults): void;
}

const slowMs = 300;

/** Stands between a client and an HTTP server of the loopback, and does to calls what the test wants. */
export async function startFaultProxy(target: string): Promise<FaultProxy> {
  let faults: Faults = () => "none";
  const calls: string[] = [];
  const server = createServer((incoming, answer) => {
    const { method = "", url = "" } = incoming;
    const number = calls.push(`${method} ${url}`);
    incoming.on("error", () => {});
    answer.on("error", () => {});
    handle(faults({ number, method, path: url }), new URL(target), incoming, answer);
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return {
    endpoint: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    calls,
    set(next) {
      faults = next;
      calls.length = 0;
    },
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      server.close();
      await once(server, "close");
    },
  };
}

function handle(fault: Fault, { hostname, port }: URL, incoming: IncomingMessage, answer: ServerResponse): void {
  if (fault === "hang") return void incoming.resume();
  if (fault === "cut-request")
    return void incoming.once("data", () => incoming.destroy()).once("end", () => incoming.destroy());
  if (fault === "error" || fault === "garbage") {
    incoming.resume();
    answer.writeHead(fault === "error" ? 503 : 200, { "content-type": "text/html" });
    return void answer.end("<html><body>It works & it does not</body>");
  }
  const { method, url: path, headers } = incoming;
  const outgoing = request({ hostname, port, method, path, headers, agent: false }, (reply) => {
    answer.writeHead(reply.statusCode ?? 500, reply.headers);
    if (fault === "cut-answer") cut(reply, answer);
    else reply.pipe(answer);
  });
  outgoing.on("error", () => answer.destroy());
  answer.on("close", () => outgoing.destroy());
  if (fault === "slow") setTimeout(() => incoming.pipe(outgoing), slowMs);
  else incoming.pipe(outgoing);
}

/** Half of the body, and then nothing. */
function cut(reply: IncomingMessage, answer: ServerResponse): void {
  const half = Math.floor(Number(reply.headers["content-length"] ?? 0) / 2);
  let sent = 0;
  reply.on("data", (part: Buffer) => {
    answer.write(part.subarray(0, Math.max(0, half - sent)), () => sent >= half && answer.destroy());
    sent += part.length;
  });
  reply.on("end", () => answer.destroy());
}
