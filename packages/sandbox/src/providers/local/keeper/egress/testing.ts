import { execFile } from "node:child_process";
import { generateKeyPairSync } from "node:crypto";
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { createServer as createHttpServer, type RequestListener } from "node:http";
import { createServer as createHttpsServer, type Server as HttpsServer } from "node:https";
import { type AddressInfo, connect, createServer, type Server, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Duplex } from "node:stream";
import { type NetworkPolicyInput, networkPolicySchema } from "@slipway/contract";
import { readExactly } from "../../../../agent/ports/read.ts";
import { type CertificateAuthority, openCertificateAuthority } from "./authority.ts";
import { leafCertificate, rootCertificate } from "./certificate.ts";
import { createEgress, type Egress, type EgressOptions } from "./egress.ts";
import type { Refusal } from "./refusals.ts";

export interface TestEgress extends AsyncDisposable {
  readonly egress: Egress;
  readonly socketPath: string;
  readonly refusals: Refusal[];
  readonly lookups: string[];
  readonly authority: CertificateAuthority;
}

type Overrides = Partial<Omit<EgressOptions, "policy">> & { policy?: NetworkPolicyInput };

export function policyOf(input: NetworkPolicyInput = {}) {
  return networkPolicySchema.parse(input);
}

/** An egress whose names all resolve to the host's loopback unless told otherwise. */
export async function startEgress({ policy, resolve, ...options }: Overrides = {}): Promise<TestEgress> {
  const directory = await mkdtemp(join(tmpdir(), "egress-"));
  const socketPath = join(directory, "egress.sock");
  const authority = await openCertificateAuthority({ file: join(directory, "authority.pem") });
  const refusals: Refusal[] = [];
  const lookups: string[] = [];
  const egress = await createEgress({
    socketPath,
    policy: policyOf(policy),
    certificateAuthority: authority,
    ownAddresses: () => [],
    onRefused: (refusal) => refusals.push(refusal),
    resolve: async (name) => {
      lookups.push(name);
      return resolve ? resolve(name) : ["127.0.0.1"];
    },
    ...options,
  });
  const dispose = async () => {
    await egress.close();
    await rm(directory, { recursive: true, force: true });
  };
  return { egress, socketPath, refusals, lookups, authority, [Symbol.asyncDispose]: dispose };
}

export interface TestServer extends AsyncDisposable {
  readonly port: number;
  readonly sockets: ReadonlySet<Socket>;
}

export async function serveTcp(onConnection: (socket: Socket) => void, host = "127.0.0.1"): Promise<TestServer> {
  return serving(createServer({ allowHalfOpen: true }, onConnection), host);
}

export async function serveHttp(onRequest: RequestListener): Promise<TestServer> {
  return serving(createHttpServer(onRequest), "127.0.0.1");
}

export interface TlsServer extends TestServer {
  readonly ca: string;
  readonly server: HttpsServer;
}

export async function serveHttps(host: string, onRequest: RequestListener): Promise<TlsServer> {
  const [rootKey, leafKey] = [newKey(), newKey()];
  const validity = { from: new Date(Date.now() - 60_000), to: new Date(Date.now() + 3_600_000) };
  const ca = rootCertificate("Test root", rootKey, validity);
  const cert = leafCertificate(host, leafKey, "Test root", rootKey, validity);
  const key = leafKey.export({ type: "pkcs8", format: "pem" });
  const server = createHttpsServer({ key, cert }, onRequest);
  return { ...(await serving(server, "127.0.0.1")), ca, server };
}

function newKey() {
  return generateKeyPairSync("ec", { namedCurve: "P-256" }).privateKey;
}

async function serving(server: Server, host: string): Promise<TestServer> {
  const sockets = new Set<Socket>();
  server.on("connection", (socket: Socket) => {
    sockets.add(socket);
    socket.on("error", () => socket.destroy());
    socket.once("close", () => sockets.delete(socket));
  });
  server.listen(0, host);
  await once(server, "listening");
  const dispose = async () => {
    const closed = once(server, "close");
    server.close();
    for (const socket of sockets) socket.destroy();
    await closed;
  };
  return { port: (server.address() as AddressInfo).port, sockets, [Symbol.asyncDispose]: dispose };
}

export async function connectTo(socketPath: string): Promise<Socket> {
  const socket = connect({ path: socketPath, allowHalfOpen: true });
  socket.on("error", () => socket.destroy());
  await once(socket, "connect");
  return socket;
}

/** All bytes until the other side ends or cuts the connection. */
export async function readAll(stream: Duplex): Promise<string> {
  const chunks: Buffer[] = [];
  stream.on("data", (chunk: Buffer) => chunks.push(chunk));
  if (!stream.closed && !stream.readableEnded) await Promise.race([once(stream, "end"), once(stream, "close")]);
  return Buffer.concat(chunks).toString("latin1");
}

/** Sends raw bytes and gives back the whole answer. */
export async function send(socketPath: string, text: string | Buffer): Promise<string> {
  const socket = await connectTo(socketPath);
  socket.write(text);
  const answer = await readAll(socket);
  socket.destroy();
  return answer;
}

/** Reads up to and with the text; what follows stays in the stream. */
export async function readUntil(stream: Duplex, text: string): Promise<string> {
  let seen = "";
  while (!seen.endsWith(text)) {
    const byte = await readExactly(stream, 1);
    if (byte === undefined) throw new Error(`ended before ${JSON.stringify(text)}: ${seen}`);
    seen += byte.toString("latin1");
  }
  return seen;
}

export async function openTunnel(socketPath: string, authority: string): Promise<Socket> {
  const socket = await connectTo(socketPath);
  socket.write(`CONNECT ${authority} HTTP/1.1\r\nHost: ${authority}\r\n\r\n`);
  const head = await readUntil(socket, "\r\n\r\n");
  if (!head.startsWith("HTTP/1.1 200 ")) throw new Error(head);
  return socket;
}

/** curl knows no unix socket as a proxy, so a loopback port stands for the one inside a sandbox. */
export async function bridge(socketPath: string): Promise<TestServer> {
  return serveTcp((client) => {
    const inner = connect({ path: socketPath, allowHalfOpen: true });
    inner.on("error", () => client.destroy());
    client.on("error", () => inner.destroy());
    client.pipe(inner).pipe(client);
  });
}

export function curl(
  args: readonly string[],
  env: Record<string, string> = {},
): Promise<{ exitCode: number; stdout: string; stderr: string }> {
  const options = { env: { PATH: "/usr/local/bin:/usr/bin:/bin", ...env } };
  return new Promise((resolve) => {
    execFile("curl", ["-sS", "--max-time", "20", ...args], options, (error, stdout, stderr) => {
      resolve({ exitCode: typeof error?.code === "number" ? error.code : 0, stdout, stderr });
    });
  });
}
