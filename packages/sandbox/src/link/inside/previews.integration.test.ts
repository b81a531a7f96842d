import { once } from "node:events";
import { type IncomingHttpHeaders, type IncomingMessage, request } from "node:http";
import { text } from "node:stream/consumers";
import { afterAll, beforeAll, expect, test } from "vitest";
import { execStart } from "../../agent/agent-fixture.ts";
import { startExec } from "../../agent/exec/exec.ts";
import { previewToken } from "../handshake.ts";
import { freePort, type LinkBox, startLinkBox } from "../link-fixture.ts";

/** Answers with what it was asked. */
const app = `
import http.server, json, sys
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        if self.headers.get("Upgrade"):
            self.wfile.write(b"HTTP/1.1 101 Switching Protocols\\r\\nConnection: Upgrade\\r\\nUpgrade: websocket\\r\\n\\r\\n")
            self.wfile.write(self.rfile.readline().upper()); self.close_connection = True; return
        self.send_response(302 if self.path == "/away" else 200); self.send_header("Set-Cookie", "app=1; Domain=modal.host")
        if self.path == "/away": self.send_header("Location", "http://localhost:%s/there" % sys.argv[1])
        self.end_headers(); self.wfile.write(json.dumps([self.path, dict(self.headers)]).encode())
    do_POST = do_GET
    def log_message(self, *_): pass
s = http.server.ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Handler); print("up", flush=True); s.serve_forever()`;

let box: LinkBox;
let publicPort: number;
let port: number;
beforeAll(async () => {
  [publicPort, port] = [await freePort(), await freePort()];
  box = await startLinkBox({ SLIPWAY_LINK_PREVIEWS: `${publicPort}=${port}` });
  const start = execStart(["python3", "-c", app, String(port)], { cwd: box.workdir });
  const server = await startExec(box.hostOf(box.link()), start);
  await server.output()[Symbol.asyncIterator]().next();
});
afterAll(async () => await box[Symbol.asyncDispose]());

const name = "abc123.tunnel.example";

/** As the tunnel passes it on: TLS has ended, the name is the tunnel's. */
function visit(path: string, headers: IncomingHttpHeaders = {}, method = "GET") {
  return request({ port: publicPort, path, method, headers: { host: name, ...headers }, agent: false });
}

async function answerTo(path: string, headers?: IncomingHttpHeaders, method?: string) {
  const asked = visit(path, headers, method).end();
  const [answer] = (await once(asked, "response")) as [IncomingMessage];
  return { status: answer.statusCode, headers: answer.headers, body: await text(answer) };
}
const token = () => previewToken(box.key, port);

test("a tunnel without the token, or with another port's, shows nothing", async () => {
  for (const path of ["/", "/?slipway_token=x", `/?slipway_token=${previewToken(box.key, port + 1)}`])
    expect(await answerTo(path)).toMatchObject({ status: 401 });
});

test("a visit with the token is remembered by a cookie of the browser's own connection, and leads on without it", async () => {
  const first = await answerTo(`/page?a=1&slipway_token=${token()}`, { accept: "text/html" });
  expect(first).toMatchObject({ status: 303, headers: { location: "/page?a=1" } });
  const [cookie = ""] = first.headers["set-cookie"] ?? [];
  expect(cookie).toMatch(/; Path=\/; HttpOnly; SameSite=Lax; Secure$/);
  const again = await answerTo("/page", {
    cookie: `${cookie.split(";")[0]}; foreign=1`,
    origin: `https://${name}`,
    referer: `https://${name}/x?slipway_token=${token()}`,
  });
  expect(again.status).toBe(200);
  const [path, headers] = JSON.parse(again.body);
  expect(path).toBe("/page");
  // The app sees itself on its own port, and neither the token nor foreign cookies.
  expect(headers).toMatchObject({
    Host: `localhost:${port}`,
    origin: `http://localhost:${port}`,
    referer: `http://localhost:${port}/x`,
  });
  expect(headers.cookie).toBeUndefined();
  expect(again.body).not.toContain(token());
  expect(again.headers["set-cookie"]).toEqual([expect.stringMatching(/^slipway_app_[0-9a-f]+_app=1$/)]);
});

test("other pages cannot use the cookie", async () => {
  const first = await answerTo(`/?slipway_token=${token()}`, { accept: "text/html" });
  const cookie = String(first.headers["set-cookie"]).split(";")[0];
  for (const headers of [
    { origin: "https://evil.example" },
    { origin: `http://${name}` },
    { "sec-fetch-site": "cross-site" },
  ])
    expect(await answerTo("/", { cookie, ...headers }, "POST")).toMatchObject({ status: 403 });
});

test("a redirect to the app's own port stays at the tunnel", async () => {
  expect(await answerTo("/away", { "x-slipway-token": token() })).toMatchObject({ headers: { location: "/there" } });
});

test("a WebSocket gets through with the token, and from the tunnel's own pages only", async () => {
  const upgrade = { connection: "Upgrade", upgrade: "websocket", "x-slipway-token": token() };
  const asked = visit("/", { ...upgrade, origin: `https://${name}` }).end();
  const [, socket] = await once(asked, "upgrade");
  socket.write("hello\n");
  expect(String((await once(socket, "data"))[0])).toBe("HELLO\n");
  socket.destroy();
  expect(await answerTo("/", { ...upgrade, origin: "https://evil.example" })).toMatchObject({ status: 403 });
});

test("without a server inside, a page says so", async () => {
  await using other = await startLinkBox({ SLIPWAY_LINK_PREVIEWS: `${await freePort()}=1` });
  const { SLIPWAY_LINK_PREVIEWS = "" } = other.environment;
  const asked = request({
    port: Number(SLIPWAY_LINK_PREVIEWS.split("=")[0]),
    headers: { host: name, "x-slipway-token": previewToken(other.key, 1) },
  }).end();
  const [answer] = await once(asked, "response");
  expect(answer.statusCode).toBe(502);
  answer.resume();
});
