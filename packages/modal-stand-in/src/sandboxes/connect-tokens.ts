import { request as ask, createServer } from "node:http";
import { listenOnLoopback } from "../front.ts";
import type { Tokens } from "../tokens.ts";
import type { Sandbox } from "./sandbox.ts";

/** Web access to one port of a sandbox, for whoever has the token. */
export interface ConnectTokens extends AsyncDisposable {
  create(sandbox: Sandbox, port?: number, userMetadata?: string): Promise<{ url: string; token: string }>;
}

const usualPort = 8080;

export function createConnectTokens(tokens: Tokens, find: (id: string) => Sandbox): ConnectTokens {
  let listening: Promise<number> | null = null;
  const server = createServer((request, response) => {
    const given = request.headers.authorization?.replace(/^Bearer /, "");
    const claims = tokens.verify(
      given ?? new URL(request.url ?? "/", "http://x").searchParams.get("_modal_connect_token") ?? "",
    );
    if (claims?.sandbox === undefined || claims.port === undefined) {
      response.writeHead(401).end("The connect token is missing, unknown or expired.\n");
      return;
    }
    const { sandbox, port, user } = claims;
    const fail = () => {
      if (!response.headersSent) response.writeHead(502);
      response.end();
    };
    const { authorization: _, ...headers } = request.headers;
    const connecting = async () => await find(sandbox).box.connect(port);
    connecting().then((socket) => {
      const inner = ask({
        createConnection: () => socket as never,
        method: request.method,
        path: request.url,
        headers: { ...headers, ...(user !== undefined && { "x-verified-user-data": user }) },
      });
      inner.on("error", fail).on("response", (answer) => {
        response.writeHead(answer.statusCode ?? 502, answer.headers);
        answer.pipe(response);
      });
      response.on("close", () => socket.destroy());
      request.pipe(inner);
    }, fail);
  });
  return {
    async create({ id }, port = usualPort, userMetadata) {
      listening ??= listenOnLoopback(server);
      const url = `http://127.0.0.1:${await listening}`;
      const user = userMetadata === undefined ? {} : { user: userMetadata };
      return { url, token: tokens.sign({ sandbox: id, port: port || usualPort, ...user }) };
    },
    async [Symbol.asyncDispose]() {
      if (listening === null) return;
      await listening;
      const closed = new Promise((resolve) => server.close(resolve));
      server.closeAllConnections();
      await closed;
    },
  };
}
