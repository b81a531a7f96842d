import { execFileSync } from "node:child_process";
import { once } from "node:events";
import { createReadStream, mkdirSync, mkdtempSync, rmSync, statSync, writeFileSync } from "node:fs";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join, normalize } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import {
  buildProject,
  cloneRepo,
  installDependencies,
  projectPath,
  startDevServer,
  testProject,
} from "../../project.ts";
import { readText } from "../../run.ts";
import { type LocalSetup, setUpLocal } from "./testing.ts";

let local: LocalSetup;
let remote: Server;
let directory: string;
let url: string;

/** On the host's loopback, and none that programs inside take for their own. */
const address = "127.0.0.2";

const packageJson = {
  name: "app",
  private: true,
  type: "module",
  scripts: {
    dev: "vite",
    build: "vite build",
    test: "node --test",
  },
  devDependencies: { vite: "5.4.19" },
};
const files = {
  "package.json": JSON.stringify(packageJson),
  "index.html": "<!doctype html><title>an app</title><script type=module src=/main.js></script>",
  "main.js": "document.title = 'runs';",
  "app.test.js": "import test from 'node:test'; test('a fact', () => {});",
};

beforeAll(async () => {
  local = setUpLocal();
  directory = mkdtempSync(join(tmpdir(), "slipway-remote-"));
  makeRepository(join(directory, "work"), join(directory, "app.git"));
  remote = createServer((request, response) => {
    const path = join(directory, normalize(new URL(request.url ?? "/", "http://remote").pathname));
    if (statSync(path, { throwIfNoEntry: false })?.isFile()) createReadStream(path).pipe(response);
    else response.writeHead(404).end();
  }).listen(0, address);
  await once(remote, "listening");
  url = `http://${address}:${(remote.address() as AddressInfo).port}/app.git`;
});
afterAll(async () => {
  remote.close();
  rmSync(directory, { recursive: true });
  await local[Symbol.asyncDispose]();
});

/** A bare repository that plain files over HTTP can serve. */
function makeRepository(work: string, bare: string): void {
  mkdirSync(work);
  for (const [name, content] of Object.entries(files)) writeFileSync(join(work, name), content);
  const git = (...args: string[]) =>
    execFileSync("git", ["-c", "user.name=a", "-c", "user.email=a@example.com", ...args], { cwd: work, stdio: "pipe" });
  git("init", "--quiet", "--initial-branch=main");
  git("add", ".");
  git("commit", "--quiet", "--message", "An app");
  git("clone", "--quiet", "--bare", work, bare);
  execFileSync("git", ["update-server-info"], { cwd: bare });
}

test("a project is cloned, installed, built, tested and served, with the network it names and no other", async () => {
  const port = Number(new URL(url).port);
  await using sandbox = await local.provider.create({
    network: { registries: true, cidrs: [`${address}/32`], ports: [port] },
    memoryMb: 2048,
  });
  expect(await cloneRepo(sandbox, url)).toMatchObject({ exitCode: 0 });
  for (const step of await installDependencies(sandbox)) expect(step.exitCode, step.stderr).toBe(0);
  expect(await buildProject(sandbox)).toMatchObject({ exitCode: 0 });
  expect(await readText(sandbox.files, `${projectPath}/dist/index.html`)).toContain("an app");
  expect(await testProject(sandbox)).toMatchObject({ exitCode: 0 });

  const server = await startDevServer(sandbox);
  const page = await (await fetch(await sandbox.previewUrl(server.port))).text();
  expect(page).toContain("<title>an app</title>");
  expect(page).toContain("/@vite/client");
  await server.exec.kill();
}, 180_000);
