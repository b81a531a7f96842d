import type { Duplex } from "node:stream";
import { readExactly } from "../../../../agent/ports/read.ts";
import { formatAddress } from "./address.ts";
import type { Target } from "./decide.ts";

/** RFC 1928: version 5, no authentication, CONNECT only. */
export const socksVersion = 5;

export const socksReply = {
  succeeded: 0,
  generalFailure: 1,
  notAllowed: 2,
  hostUnreachable: 4,
  connectionRefused: 5,
  timedOut: 6,
  commandNotSupported: 7,
  addressTypeNotSupported: 8,
} as const;
export type SocksReply = (typeof socksReply)[keyof typeof socksReply];

const noAuthentication = 0;
const noAcceptableMethod = 0xff;
const connectCommand = 1;
const addressType = { ipv4: 1, domain: 3, ipv6: 4 } as const;

/** Reads the greeting and the request. Undefined when the client disconnects or gets a failure. */
export async function readSocksRequest(client: Duplex): Promise<Target | undefined> {
  const greeting = await readExactly(client, 2);
  const methods = greeting && (await readExactly(client, greeting[1] ?? 0));
  if (methods === undefined || greeting?.[0] !== socksVersion) return giveUp(client);
  if (!methods.includes(noAuthentication)) {
    client.end(Buffer.from([socksVersion, noAcceptableMethod]));
    return undefined;
  }
  client.write(Buffer.from([socksVersion, noAuthentication]));

  const request = await readExactly(client, 4);
  if (request === undefined || request[0] !== socksVersion || request[2] !== 0) return giveUp(client);
  const host = await readHost(client, request[3] ?? 0);
  if (host === "unknown_type") return fail(client, socksReply.addressTypeNotSupported);
  const port = host === undefined ? undefined : await readExactly(client, 2);
  if (host === undefined || port === undefined) return giveUp(client);
  if (request[1] !== connectCommand) return fail(client, socksReply.commandNotSupported);
  return { host, port: port.readUInt16BE() };
}

export function writeSocksReply(client: Duplex, reply: SocksReply): void {
  // Without the bound address, which is private to the host.
  const message = Buffer.from([socksVersion, reply, 0, addressType.ipv4, 0, 0, 0, 0, 0, 0]);
  if (reply === socksReply.succeeded) client.write(message);
  else client.end(message);
}

async function readHost(client: Duplex, type: number): Promise<string | "unknown_type" | undefined> {
  if (type === addressType.domain) {
    const length = await readExactly(client, 1);
    const name = length && (await readExactly(client, length[0] ?? 0));
    return name?.toString("latin1");
  }
  if (type !== addressType.ipv4 && type !== addressType.ipv6) return "unknown_type";
  const bytes = await readExactly(client, type === addressType.ipv4 ? 4 : 16);
  if (bytes === undefined) return undefined;
  return formatAddress({ family: bytes.length === 4 ? 4 : 6, value: BigInt(`0x${bytes.toString("hex")}`) });
}

function fail(client: Duplex, reply: SocksReply): undefined {
  writeSocksReply(client, reply);
}

function giveUp(client: Duplex): undefined {
  client.destroy();
}
