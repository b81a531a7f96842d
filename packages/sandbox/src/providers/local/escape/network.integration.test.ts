import { readFileSync } from "node:fs";
import { createServer, type Server } from "node:http";
import { networkInterfaces } from "node:os";
import { fileURLToPath } from "node:url";
import type { NetworkPolicyInput } from "@slipway/contract";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { OwnedSandbox, Sandbox } from "../../../provider.ts";
import { run } from "../../../run.ts";
import { type Attacker, attack, eventOf } from "./attacker-fixture.ts";

const client = readFileSync(fileURLToPath(new URL("./fixtures/proxy.py", import.meta.url)));
let attacker: Attacker;
let server: Server;
let port: number;
let served: string[];
beforeAll(async () => {
  attacker = attack();
  served = [];
  server = createServer((request, response) => {
    served.push(request.url ?? "");
    if (request.url === "/away") response.writeHead(302, { location: `http://127.0.0.2:${port}/stolen` });
    response.end("the host's");
  });
  await new Promise<void>((resolve) => {
    server.listen(0, resolve);
  });
  port = (server.address() as { port: number }).port;
});
afterAll(async () => {
  server.closeAllConnections();
  server.close();
  await attacker[Symbol.asyncDispose]();
});

async function ask(sandbox: Sandbox, wanted: readonly string[]): Promise<Record<string, string>> {
  await sandbox.files.write("/tmp/proxy.py", client);
  const { stdout, stderr } = await run(sandbox, ["python3", "/tmp/proxy.py", ...wanted]);
  expect(stderr).toBe("");
  const answers = stdout
    .trim()
    .split("\n")
    .map((line) => {
      const question = wanted.find((text) => line.startsWith(`${text}: `)) ?? line;
      return [question, line.slice(question.length + 2)] as const;
    });
  return Object.fromEntries(answers);
}

const hostAddresses = Object.values(networkInterfaces())
  .flatMap((all) => all ?? [])
  .filter(({ scopeid }) => !scopeid)
  .map(({ address, family }) => (family === "IPv6" ? `[${address}]` : address));

/** Every way to write the host's own loopback, or what leads there. */
const loopbacks = [
  ...["127.0.0.1", "127.1", "127.0.1", "127.255.255.254", "0177.0.0.1", "0x7f.0.0.1", "0x7f000001", "2130706433"],
  ...["017700000001", "127.0.0.1.", "0.0.0.0", "0", "[::1]", "[::]", "[::ffff:127.0.0.1]", "[::ffff:7f00:1]"],
  ...["[0:0:0:0:0:ffff:127.0.0.1]", "[::127.0.0.1]", "[64:ff9b::7f00:1]", "[2002:7f00:1::]", "[::1%lo]", "[fe80::1]"],
  ...["localhost", "LOCALHOST", "localhost.", "allowed.test@127.0.0.1", "127.0.0.1#allowed.test", "１２７.0.0.1"],
  ...["169.254.169.254", "[fd00:ec2::254]", "%6c%6f%63%61%6c%68%6f%73%74"],
];

const policies: Record<string, NetworkPolicyInput> = {
  none: {},
  "names, localhost among them": { domains: ["localhost", "*.localhost", "allowed.test"] },
  "the whole internet": { domains: ["localhost"], cidrs: ["0.0.0.0/0", "::/0"] },
};

describe.each(Object.keys(policies))("a policy of %s", (name) => {
  let sandbox: OwnedSandbox;
  beforeAll(async () => {
    sandbox = await attacker.sandbox({ network: { ...policies[name], ports: [port, 80, 443] } });
  });

  test("records what it refused", async () => {
    await ask(sandbox, [`connect localhost:${port}`, `connect 127.0.0.1:${port}`]);
    const byName = await eventOf(attacker.provider, sandbox, "egress.refused", (event) => event.host === "localhost");
    expect(byName).toMatchObject({ port, rule: name === "none" ? "not_allowed" : "private_address" });
    const byAddress = await eventOf(
      attacker.provider,
      sandbox,
      "egress.refused",
      (event) => event.host === "127.0.0.1",
    );
    expect(byAddress).toMatchObject({ port, rule: "private_address" });
  });

  test("opens no tunnel to the host itself, however it is written", async () => {
    const hosts = [...new Set([...loopbacks, ...hostAddresses])];
    const wanted = hosts.flatMap((host) => [`connect ${host}:${port}`, `raw ${host}:${port}`]);
    const answers = Object.entries(await ask(sandbox, wanted));
    expect(answers).toHaveLength(wanted.length);
    expect(
      answers.filter(([, answer]) => !/^(HTTP\/1\.1 (400|403|502)|closed|ConnectionResetError)/.test(answer)),
    ).toEqual([]);
    expect(served).toEqual([]);
  });

  test("fetches nothing from the host itself", async () => {
    const hosts = ["127.0.0.1", "localhost", "[::1]", "127.1", "2130706433", ...hostAddresses];
    const answers = Object.values(
      await ask(
        sandbox,
        hosts.map((host) => `get http://${host}:${port}/`),
      ),
    );
    expect(answers.filter((answer) => !/^(HTTP\/1\.1 (400|403|502)|closed)/.test(answer))).toEqual([]);
    expect(served).toEqual([]);
  });

  test("carries no SOCKS to the host itself", async () => {
    const wanted = [
      ...["127.0.0.1", "127.0.0.2", "0.0.0.0", "169.254.169.254"].map((host) => `socks4 ${host}:${port}`),
      ...["::1", "::", "::ffff:127.0.0.1", "64:ff9b::7f00:1"].map((host) => `socks6 ${host}:${port}`),
      ...["localhost", "127.0.0.1", "0x7f.1", "2130706433"].map((host) => `socksname ${host}:${port}`),
    ];
    const answers = Object.entries(await ask(sandbox, wanted));
    expect(answers.filter(([, answer]) => !/^(socks [1-9]|closed)/.test(answer))).toEqual([]);
    expect(served).toEqual([]);
  });

  test("has no other way out: no route, no resolver, no datagrams", async () => {
    const direct = [
      "1.1.1.1:443",
      "10.0.0.1:80",
      "169.254.169.254:80",
      ...hostAddresses.map((host) => `${host.replace(/[[\]]/g, "")}:${port}`),
    ];
    const outside = direct.filter((target) => !/^(127\.|::1)/.test(target));
    const wanted = [
      ...outside.map((target) => `direct ${target}`),
      ...["1.1.1.1:53", "8.8.8.8:53", "2606:4700:4700::1111:53", "224.0.0.1:5353"].map((target) => `udp ${target}`),
      ...["example.com", "data-that-leaks.example.com"].map((target) => `resolve ${target}`),
    ];
    const answers = Object.entries(await ask(sandbox, wanted));
    expect(
      answers.filter(([, answer]) => !/(OSError|gaierror|TimeoutError|ConnectionRefusedError)$/.test(answer)),
    ).toEqual([]);
  });
});

describe("a policy that names one loopback address on purpose", () => {
  let sandbox: OwnedSandbox;
  beforeAll(async () => {
    sandbox = await attacker.sandbox({ network: { cidrs: ["127.0.0.1/32"], ports: [port] } });
  });

  test("opens that one, on that port, and nothing beside it", async () => {
    const answers = await ask(sandbox, [
      `connect 127.0.0.1:${port}`,
      `connect 127.0.0.2:${port}`,
      `connect [::1]:${port}`,
      `connect 127.0.0.1:22`,
      `connect localhost:${port}`,
    ]);
    expect(Object.values(answers).map((answer) => answer.slice(0, 12))).toEqual([
      "HTTP/1.1 200",
      ...Array<string>(4).fill("HTTP/1.1 403"),
    ]);
  });

  test("follows no redirect to another: the client has to ask, and is refused", async () => {
    const { stdout } = await run(
      sandbox,
      ["curl", "-sL", "-o", "/dev/null", "-w", "%{http_code} %{num_redirects}", `http://127.0.0.1:${port}/away`],
      {
        env: { NO_PROXY: "", no_proxy: "" },
      },
    );
    expect(stdout).toBe("403 1");
    expect(served).toContain("/away");
    expect(served).not.toContain("/stolen");
  });

  test("is taken back while a tunnel is open, which is cut", async () => {
    const hold = `import socket
s = socket.create_connection(("127.0.0.1", 3128))
s.sendall(b"CONNECT 127.0.0.1:${port} HTTP/1.1\\r\\nHost: x\\r\\n\\r\\n")
print(s.recv(99)[9:12].decode(), flush=True)
print("end", len(s.recv(99)), flush=True)`;
    const exec = await sandbox.exec({ argv: ["python3", "-c", hold], timeoutMs: 15_000 });
    const output = exec.output()[Symbol.asyncIterator]();
    expect(String((await output.next()).value?.data)).toBe("200\n");
    await sandbox.setNetwork({});
    expect(String((await output.next()).value?.data)).toBe("end 0\n");
  });
});

test("a flood of connections that say nothing leaves the neighbour and the flooder's host their ways", async () => {
  const network = { cidrs: ["127.0.0.1/32"], ports: [port] };
  await using flooder = await attacker.sandbox({ network });
  await using neighbour = await attacker.sandbox({ network });
  const flood = `import socket
held = []
for i in range(400):
    try:
        s = socket.create_connection(("127.0.0.1", 3128), 1)
        s.sendall(b"CONNECT ")
        held.append(s)
    except OSError: break
print("ready", flush=True)
import time; time.sleep(60)`;
  const exec = await flooder.exec({ argv: ["python3", "-c", flood] });
  for await (const chunk of exec.output()) if (chunk.type === "stdout") break;
  expect(await ask(neighbour, [`connect 127.0.0.1:${port}`])).toEqual({
    [`connect 127.0.0.1:${port}`]: expect.stringMatching(/ 200 /),
  });
  expect((await run(flooder, ["true"])).exitCode).toBe(0);
  await exec.kill({ graceMs: 0 });
});
