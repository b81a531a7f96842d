import type { IncomingMessage } from "node:http";
import type { Socket } from "node:net";
import type { Duplex } from "node:stream";
import { TLSSocket } from "node:tls";
import { readExactly } from "../../../../agent/ports/read.ts";
import { responseOn } from "../../../../relay/exchange.ts";
import { splice } from "../../../../relay/splice.ts";
import { answerTo, sendAnswer, socksReplyTo } from "./answers.ts";
import type { CertificateAuthority } from "./authority.ts";
import type { Target } from "./decide.ts";
import type { Gate, Reached } from "./gate.ts";
import { parseHost } from "./host.ts";
import { type Opened, targetOf } from "./requests.ts";
import { readSocksRequest, socksReply, socksVersion, writeSocksReply } from "./socks.ts";

export interface ConnectionOptions {
  readonly gate: Gate;
  readonly limits: { readonly idleMs: number; readonly headersMs: number };
  readonly certificateAuthority: CertificateAuthority;
  /** Reads the connection as HTTP. With `openedFor`, every request on it is for that. */
  readonly serveHttp: (connection: Duplex, openedFor?: Opened) => void;
}

export function createConnectionHandlers(options: ConnectionOptions) {
  const { limits, serveHttp } = options;
  return {
    /** Tells SOCKS from HTTP by the first byte. */
    onConnection: async (client: Socket): Promise<void> => {
      const deadline = setTimeout(() => client.destroy(), limits.headersMs).unref();
      try {
        const first = await readExactly(client, 1);
        if (first === undefined) return void client.destroy();
        client.unshift(first);
        if (first[0] !== socksVersion) return serveHttp(client);
        const target = await readSocksRequest(client);
        clearTimeout(deadline);
        if (target === undefined) return;
        await openTunnel(target, client, options, {
          accept: () => writeSocksReply(client, socksReply.succeeded),
          refuse: (unreached) => writeSocksReply(client, socksReplyTo(unreached)),
        });
      } finally {
        clearTimeout(deadline);
      }
    },
    onConnect: async (request: IncomingMessage, client: Duplex, head: Buffer): Promise<void> => {
      client.on("error", () => client.destroy());
      if (head.length > 0) client.unshift(head);
      const target = targetOf(request.url ?? "");
      await openTunnel(target, client, options, {
        accept: () => client.write("HTTP/1.1 200 Connection established\r\n\r\n"),
        refuse: (unreached) => sendAnswer(responseOn(request, client), answerTo(unreached, target)),
      });
    },
  };
}

interface TunnelReplies {
  accept(): void;
  refuse(unreached: Exclude<Reached, { outcome: "open" }>): void;
}

/** Carries bytes unread. With injected secrets, terminates the connection here and reads its requests. */
async function openTunnel(
  target: Target,
  client: Duplex,
  options: ConnectionOptions,
  replies: TunnelReplies,
): Promise<void> {
  const { gate, limits, serveHttp } = options;
  if (gate.secretsFor(target, "https").length > 0) {
    replies.accept();
    return terminateTls(target, client as Socket, options);
  }
  if (gate.secretsFor(target, "http").length > 0) {
    replies.accept();
    return serveHttp(client, { target, scheme: "http" });
  }
  const abort = new AbortController();
  const onClose = () => abort.abort();
  client.once("close", onClose);
  const reached = await gate.reach(target, abort.signal);
  client.off("close", onClose);
  if (reached.outcome !== "open") return replies.refuse(reached);
  replies.accept();
  splice(client, reached.connection, limits.idleMs);
}

function terminateTls(
  target: Target,
  client: Socket,
  { certificateAuthority, limits, serveHttp }: ConnectionOptions,
): void {
  const host = parseHost(target.host);
  const secured = new TLSSocket(client, {
    isServer: true,
    secureContext: certificateAuthority.contextFor(host?.kind === "name" ? host.name : ""),
    ALPNProtocols: ["http/1.1"],
  });
  const deadline = setTimeout(() => client.destroy(), limits.headersMs).unref();
  secured.on("error", () => client.destroy());
  secured.once("close", () => {
    clearTimeout(deadline);
    client.destroy();
  });
  secured.once("secure", () => {
    clearTimeout(deadline);
    serveHttp(secured, { target, scheme: "https" });
  });
}
