import { Agent, createServer, request } from "node:http";

/** A proxy of plain Node between a socket and an address: what the gateway is measured against. */
const [, , upstreamUrl = "", socketPath = ""] = process.argv;
const agent = new Agent({ keepAlive: true });

createServer((incoming, outgoing) => {
  const { method, headers, url = "/" } = incoming;
  const upstream = request(new URL(url, upstreamUrl), { agent, method, headers }, (response) => {
    outgoing.writeHead(response.statusCode ?? 502, response.headers);
    response.pipe(outgoing);
  });
  incoming.pipe(upstream);
}).listen(socketPath, () => process.send?.({}));
