import { execFile } from "node:child_process";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { describe, expect, test } from "vitest";
import { dial } from "./dial.ts";
import { proxyEnvironment } from "./environment.ts";
import { bridge, curl, serveHttp, serveHttps, startEgress } from "./testing.ts";

describe("curl", () => {
  test.each(["http", "socks5h"])("reaches an allowed host through %s and no other", async (scheme) => {
    await using origin = await serveHttp((request, response) => response.end(`hello ${request.headers.host}`));
    await using proxy = await startEgress({
      policy: { cidrs: ["127.0.0.1/32"], domains: ["app.example"], ports: [origin.port] },
    });
    await using inside = await bridge(proxy.socketPath);
    const through = ["--proxy", `${scheme}://127.0.0.1:${inside.port}`];
    expect(await curl([...through, `http://app.example:${origin.port}/`])).toMatchObject({
      stdout: `hello app.example:${origin.port}`,
    });
    expect(await curl([...through, "--proxytunnel", `http://app.example:${origin.port}/`])).toMatchObject({
      exitCode: 0,
    });
    expect((await curl([...through, "--fail", "http://evil.example/"])).exitCode).not.toBe(0);
    expect((await curl([...through, "--fail", "--globoff", `http://[::1]:${origin.port}/`])).exitCode).not.toBe(0);
  });

  test("follows a redirect to a private host only as far as the egress", async () => {
    await using origin = await serveHttp((_, response) =>
      response.writeHead(302, { Location: "http://127.0.0.2:80/" }).end(),
    );
    await using proxy = await startEgress({
      policy: { cidrs: ["127.0.0.1/32"], domains: ["app.example"], ports: [80, origin.port] },
    });
    await using inside = await bridge(proxy.socketPath);
    const { stdout } = await curl([
      "--proxy",
      `http://127.0.0.1:${inside.port}`,
      "--location",
      `http://app.example:${origin.port}/`,
    ]);
    expect(stdout).toContain("127.0.0.2:80 is a private address");
  });

  test("trusts an injected host by the bundle and sends no secret itself", async () => {
    const host = "api.example.com";
    await using origin = await serveHttps(host, (request, response) =>
      response.end(String(request.headers.authorization === "Bearer s3cret")),
    );
    await using proxy = await startEgress({
      policy: { cidrs: ["127.0.0.1/32"], secrets: [{ host, header: "authorization", value: "Bearer s3cret" }] },
      upstreamCa: origin.ca,
      dial: (addresses, _port, timeoutMs, signal) => dial(addresses, origin.port, timeoutMs, signal),
    });
    await using inside = await bridge(proxy.socketPath);
    const directory = await mkdtemp(join(tmpdir(), "bundle-"));
    try {
      const caBundlePath = join(directory, "bundle.pem");
      await writeFile(caBundlePath, proxy.authority.caCertificatePem);
      const environment = proxyEnvironment({ port: inside.port, caBundlePath });
      const answer = await curl(["--verbose", `https://${host}/`], environment);
      expect(answer.stdout).toBe("true");
      expect(answer.stdout + answer.stderr).not.toContain("s3cret");
    } finally {
      await rm(directory, { recursive: true, force: true });
    }
  });
});

test("Node's fetch goes through the egress by the environment alone", async () => {
  await using origin = await serveHttp((request, response) => response.end(`hello ${request.headers.host}`));
  await using proxy = await startEgress({
    policy: { cidrs: ["127.0.0.1/32"], domains: ["app.example"], ports: [origin.port] },
  });
  await using inside = await bridge(proxy.socketPath);
  const program = `fetch("http://app.example:${origin.port}/").then((r) => r.text()).then(console.log)`;
  const env = proxyEnvironment({ port: inside.port, caBundlePath: "/dev/null" });
  const { stdout } = await promisify(execFile)(process.execPath, ["-e", program], { env });
  expect(stdout).toBe(`hello app.example:${origin.port}\n`);
});
