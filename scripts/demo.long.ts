import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { chmod, mkdtemp, rm } from "node:fs/promises";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { text } from "node:stream/consumers";
import { fileURLToPath, URL } from "node:url";
import { promisify } from "node:util";
import { expect, onTestFinished, test } from "vitest";

const demo = fileURLToPath(new URL("demo.mjs", import.meta.url));
/** Where set-up puts other people's agents for tests. */
const agents = fileURLToPath(new URL("test-agents", import.meta.url));
const limitMs = 1_500_000;

test(
  "the demo shows a conflict, a retry and a respawn, succeeds twice, and asks a registry for nothing the second time",
  async () => {
    await using registry = await openRegistry();
    const settings = { SLIPWAY_STATE_DIR: await newDirectory(), npm_config_registry: registry.url };

    expectAllShown(await runDemo(settings));
    expect(registry.requests.length).toBeGreaterThan(0);

    registry.requests.length = 0;
    const second = await runDemo(settings);
    expect(second.code, second.output.slice(-4000)).toBe(0);
    expect(second.output).toMatch(/^Main passes its \d+ tests\.$/m);
    expect(registry.requests).toEqual([]);
  },
  2 * limitMs,
);

test(
  "the demo driven by the claude program shows the same, and succeeds",
  async () => {
    const settings = { SLIPWAY_STATE_DIR: await newDirectory(), SLIPWAY_AGENTS: agents };
    expectAllShown(await runDemo(settings, "--agent", "claude-code"));
  },
  limitMs + 120_000,
);

async function newDirectory(): Promise<string> {
  const directory = await mkdtemp("/var/tmp/slipway-demo-");
  onTestFinished(() => rm(directory, { recursive: true, force: true, maxRetries: 10 }));
  // As root, sandboxes run as another user, who must be able to pass through.
  await chmod(directory, 0o711);
  return directory;
}

/** Of the first demo in a directory: there is no fix that an earlier one has taught. */
function expectAllShown({ code, output }: Awaited<ReturnType<typeof runDemo>>): void {
  expect(code, output.slice(-4000)).toBe(0);
  expect(output).toMatch(/^ {2}(storage|live-hub) conflicted with main/m);
  expect(output).toMatch(/^ {2}entries failed its tests, and was tried again at level [1-4]$/m);
  expect(output).toMatch(/^ {2}the sandbox of look died, and another one went on$/m);
  expect(output).toMatch(/^Main passes its \d+ tests\.$/m);
}

async function runDemo(settings: NodeJS.ProcessEnv, ...options: string[]) {
  const own = Object.entries(process.env).filter(([name]) => !/^(VITEST|NODE_OPTIONS)/.test(name));
  const child = spawn(process.execPath, [demo, "--exit", ...options], {
    env: { ...Object.fromEntries(own), ...settings },
    stdio: ["ignore", "pipe", "pipe"],
    // It ends what it has started.
    timeout: limitMs,
  });
  const [[code], said, told] = await Promise.all([once(child, "close"), text(child.stdout), text(child.stderr)]);
  return { code: code as number | null, output: `${said}\n${told}` };
}

/** On the host's loopback, and no address that programs inside take for their own. */
const address = "127.0.0.2";

/** Passes on what this machine's registry says, and knows what was asked for. */
async function openRegistry() {
  const { stdout } = await promisify(execFile)("npm", ["config", "get", "registry"], { cwd: "/" });
  const upstream = stdout.trim().replace(/\/*$/, "/");
  const requests: string[] = [];
  const server = createServer(async ({ url: path = "/", headers: { accept = "*/*" } }, response) => {
    requests.push(path);
    try {
      const answer = await fetch(new URL(path.slice(1), upstream), { headers: { accept } });
      const type = answer.headers.get("content-type") ?? "";
      const body = Buffer.from(await answer.arrayBuffer());
      response.writeHead(answer.status, { "content-type": type });
      response.end(type.includes("json") ? body.toString("utf8").replaceAll(upstream, url) : body);
    } catch (error) {
      response.writeHead(502).end((error as Error).message);
    }
  }).listen(0, address);
  await once(server, "listening");
  const url = `http://${address}:${(server.address() as AddressInfo).port}/`;
  return {
    url,
    requests,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
