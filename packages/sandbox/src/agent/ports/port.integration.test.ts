import { once } from "node:events";
import { mkdirSync, rmSync } from "node:fs";
import { createServer, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { hasCode } from "@slipway/contract";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Exec } from "../../provider.ts";
import { proxyEnvironment } from "../../providers/local/keeper/egress/environment.ts";
import { type AgentBox, execStart, startAgentBox } from "../agent-fixture.ts";
import { startExec } from "../exec/exec.ts";
import { connectPort } from "./port.ts";

const egressDir = join(tmpdir(), `slipway-egress-${process.pid}`);
const asked: string[] = [];
const egress = createServer((socket: Socket) => {
  socket.on("error", () => {});
  socket.once("data", (data) => {
    asked.push(data.toString().split("\r\n")[0] ?? "");
    if (/refused|::1/.test(data.toString())) socket.end("HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n");
    else if (data.toString().startsWith("CONNECT")) socket.write("HTTP/1.1 200 OK\r\n\r\nbanner\n");
    else socket.end("plain answer");
    socket.pipe(socket);
  });
});

let box: AgentBox;
beforeAll(async () => {
  mkdirSync(egressDir, { mode: 0o755 });
  const path = join(egressDir, "egress.sock");
  egress.listen({ path, writableAll: true, readableAll: true });
  await once(egress, "listening");
  box = await startAgentBox({
    agentArguments: [
      "--egress",
      "/egress/egress.sock",
      "--forward",
      "5432=db.example:5432",
      "--forward",
      "5433=refused.example:1",
    ],
    binds: ["--ro-bind", egressDir, "/egress", "--ro-bind", process.execPath, "/node"],
  });
});
afterAll(async () => {
  await box[Symbol.asyncDispose]();
  egress.close();
  rmSync(egressDir, { recursive: true, force: true });
});

async function run(argv: readonly string[], env: Readonly<Record<string, string>> = {}): Promise<string> {
  const start = execStart(argv);
  const exec = await startExec(box.host, { ...start, env: { ...start.env, ...env } });
  let text = "";
  for await (const chunk of exec.output())
    if (chunk.type !== "output_truncated") text += Buffer.from(chunk.data).toString();
  return text;
}

async function serve(address: string, port: number) {
  const exec = await startExec(
    box.host,
    execStart([
      "python3",
      "-uc",
      `import socket
s=socket.socket(socket.AF_INET6 if ":" in "${address}" else socket.AF_INET); s.setsockopt(1,2,1); s.bind(("${address}",${port})); s.listen(); print("up")
while True:
    c,_=s.accept(); data=b""
    while True:
        d=c.recv(65536)
        if not d: break
        data+=d
    c.sendall(data.upper()); c.close()`,
    ]),
  );
  await exec.output()[Symbol.asyncIterator]().next();
  return exec;
}

describe("a port", () => {
  it.each([
    ["127.0.0.1", 8001],
    ["::1", 8002],
  ])("on %s takes bytes both ways, and each direction ends by itself", async (address, port) => {
    const exec = await serve(address, port);
    const pipe = await connectPort(box.dial, port);
    pipe.end(Buffer.alloc(3_000_000, "abc"));
    let bytes = 0;
    for await (const part of pipe) bytes += (part as Buffer).length;
    expect(bytes).toBe(3_000_000);
    await exec.kill({ graceMs: 0 });
  });

  it("that nobody serves is refused", async () => {
    await expect(connectPort(box.dial, 9)).rejects.toSatisfy((error) => hasCode(error, "connection_refused"));
    await expect(connectPort(box.dial, 70_000)).rejects.toSatisfy((error) => hasCode(error, "invalid_port"));
    await expect(connectPort(box.dial, 80, AbortSignal.abort())).rejects.toSatisfy((error) =>
      hasCode(error, "aborted"),
    );
  });
});

describe("a program that is told of the proxy", () => {
  const website = `import { createServer } from "node:http";
const answer = (name) => (request, response) => response.end(name + " " + request.method + " " + request.url);
createServer(answer("six")).listen(8003, "::1");
createServer(answer("four")).listen(8003, "127.0.0.1", () => console.log("up"));`;
  let server: Exec;
  beforeAll(async () => {
    server = await startExec(box.host, execStart(["/node", "--input-type=module", "-e", website]));
    await server.output()[Symbol.asyncIterator]().next();
  });
  afterAll(() => server.kill({ graceMs: 0 }));

  const url = "http://[::1]:8003/a?b";
  const open = (...words: string[]) => `import urllib.request as u; print(u.urlopen(${words.join()}).read().decode())`;
  it.each([
    ["curl", ["curl", "-sg", url]],
    ["curl that does not read NO_PROXY", ["curl", "-sg", "--noproxy", "", url]],
    ["curl through a tunnel", ["curl", "-sg", "--noproxy", "", "--proxytunnel", url]],
    ["Node's fetch", ["/node", "-e", `fetch("${url}").then((r) => r.text()).then(console.log)`]],
    ["Node's http", ["/node", "-e", `http.get("${url}", (r) => r.pipe(process.stdout))`]],
    ["Python's urllib", ["python3", "-c", open(`"${url}"`)]],
    ["Python's urllib with a body", ["python3", "-c", open(`"${url}"`, "b'body'")]],
  ])("reaches the sandbox's own ::1: %s", async (_, argv) => {
    const text = await run(argv, proxyEnvironment({ port: 3128, caBundlePath: "/dev/null" }));
    expect(text.trim()).toMatch(/^six (GET|POST) \/a\?b$/);
  });
});

describe("the way out", () => {
  const client = (port: number, send: string) =>
    run([
      "python3",
      "-c",
      `import socket
c=socket.create_connection(("127.0.0.1",${port})); c.sendall(b"${send}"); c.shutdown(1)
while (d:=c.recv(1000)): print(d.decode(), end="")`,
    ]);

  it("is the proxy's socket behind 127.0.0.1:3128", async () => {
    expect(await client(3128, "GET / HTTP/1.1\\r\\n\\r\\n")).toContain("plain answer");
  });

  it.each([
    "CONNECT [::1]:0 HTTP/1.1",
    "CONNECT [::1]:99999 HTTP/1.1",
    "CONNECT [::1]:8003x HTTP/1.1",
    "CONNECT [::1]: HTTP/1.1",
    "CONNECT [::1]:9 HTTP/1.1",
    "GET http://[::1]:9/ HTTP/1.1",
    "CONNECT [::1].evil.example:80 HTTP/1.1",
    "GET http://[::1]8003/ HTTP/1.1",
    "GET http://[::1]:8003@evil.example/ HTTP/1.1",
  ])("asks the proxy for what nobody serves at its own ::1: %s", async (line) => {
    await client(3128, `${line}\\r\\n\\r\\n`);
    expect(asked).toContain(line);
  });

  it("opens forwarded ports with CONNECT and passes the rest", async () => {
    expect(await client(5432, "hello")).toBe("banner\nhello");
    expect(asked).toContain("CONNECT db.example:5432 HTTP/1.1");
  });

  it("closes a forwarded port that the proxy refuses", async () => {
    expect(await client(5433, "")).toBe("");
  });

  it("refuses nobody while the forwarder, killed by hostile code, comes back", async () => {
    const kill = "for p in $(ps --ppid 1 -o pid=); do [ $p != $PPID ] && kill -9 $p; done";
    const ask = "exec 3<>/dev/tcp/127.0.0.1/3128 && printf 'GET /\\r\\n\\r\\n' >&3; head -c 12 <&3";
    expect(await run(["bash", "-c", `${kill}; ${ask}`])).toBe("plain answer");
  });
});
