import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { text } from "node:stream/consumers";
import { fileURLToPath } from "node:url";
import { type Client, createClient } from "@slipway/client";
import { newId, type StartBuild } from "@slipway/contract";
import { openDatabase, openStore } from "@slipway/store";
import { afterAll, afterEach, beforeEach, describe, expect, onTestFinished, test, vi } from "vitest";

const program = fileURLToPath(new URL("main.ts", import.meta.url));
let directory: string;
const running = new Set<ChildProcess>();
/** Starts of whole servers, on machines that have other things to do. */

const compiled = mkdtempSync(join(tmpdir(), "slipway-compiled-"));

beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), "slipway-main-"));
});
afterAll(() => rmSync(compiled, { recursive: true, force: true, maxRetries: 10 }));
afterEach(async () => {
  for (const child of running) await end(child, "SIGTERM");
  rmSync(directory, { recursive: true, force: true, maxRetries: 10 });
});

interface Started {
  readonly child: ChildProcess;
  readonly said: { ready?: boolean; error?: { code: string; message: string; action: string } };
  readonly client: Client;
  readonly log: Promise<string>;
}

async function start(environment: NodeJS.ProcessEnv = {}): Promise<Started> {
  const stateDir = join(directory, "state");
  const child = spawn(process.execPath, [program], {
    env: {
      PATH: process.env["PATH"],
      NODE_COMPILE_CACHE: compiled,
      SLIPWAY_STATE_DIR: stateDir,
      SLIPWAY_MODEL: "scripted/planner",
      SANDBOX_PROVIDER: "simulated",
      SLIPWAY_SIMULATION_SPEED: "10000",
      ...environment,
    },
    stdio: ["ignore", "pipe", "pipe"],
  });
  running.add(child);
  child.once("exit", () => running.delete(child));
  const log = text(child.stderr);
  let line = "";
  for await (const chunk of child.stdout) {
    line += chunk;
    if (line.includes("\n")) break;
  }
  const socketPath = join(environment["SLIPWAY_STATE_DIR"] ?? stateDir, "server.sock");
  return { child, said: JSON.parse(line), client: createClient({ socketPath }), log };
}

async function end(child: ChildProcess, signal: NodeJS.Signals): Promise<number | null> {
  if (child.exitCode !== null || child.signalCode !== null) return child.exitCode;
  const exit = once(child, "exit");
  child.kill(signal);
  return (await exit)[0];
}

const planned = async (client: Client, hold: "plan" | "none", more: Partial<StartBuild> = {}) => {
  const { id } = await client.builds.start({ request: "a habit tracker", hold, ...more });
  for await (const { type } of client.builds.follow(id)) if (type === "plan.made") break;
  return id;
};

describe("a server", () => {
  test("drives a build from its request to its end, and ends in order", async () => {
    const { client, said, child, log } = await start();
    expect(said).toMatchObject({ ready: true });
    const id = await planned(client, "none");
    for await (const _ of client.builds.follow(id)) {
      // Until the build has ended.
    }
    expect(await client.builds.get(id)).toMatchObject({ status: "succeeded", tasks: { failed: 0, pending: 0 } });
    const { money, by } = await client.builds.costs(id);
    expect(by.task.reduce((sum, { spentMicroUsd }) => sum + spentMicroUsd, 0)).toBe(money.spentMicroUsd);
    expect(money.reservedMicroUsd).toBe(0);
    expect(await end(child, "SIGTERM")).toBe(0);
    expect(await log).toMatch(/listens on .*\n.*ends\n$/);
  });

  test("that was killed leaves nothing in the way of the next one, which goes on with its builds", async () => {
    const first = await start();
    const id = await planned(first.client, "plan");
    await end(first.child, "SIGKILL");
    const { client, said } = await start();
    expect(said).toMatchObject({ ready: true });
    await client.builds.resume(id);
    for await (const _ of client.builds.follow(id)) {
      // Until the build has ended.
    }
    expect((await client.builds.get(id)).status).toBe("succeeded");
  });

  test("has a build's secrets after a restart, too, until the build has ended", async () => {
    const secret = { host: "api.example.com", header: "authorization", value: "Bearer t0p-5ecret" };
    const first = await start();
    const id = await planned(first.client, "plan", { secrets: [secret] });
    await end(first.child, "SIGKILL");
    const state = join(directory, "state");
    const pathOf = (build: string) => join(state, "builds", build, "secrets.json");
    // Of a build that its server did not come to begin.
    const unknown = newId("bld");
    mkdirSync(join(state, "builds", unknown));
    writeFileSync(pathOf(unknown), JSON.stringify([secret]));
    const { client, child, log } = await start();
    expect(existsSync(pathOf(unknown))).toBe(false);
    expect(JSON.parse(readFileSync(pathOf(id), "utf8"))).toEqual([secret]);
    expect(statSync(pathOf(id)).mode & 0o777).toBe(0o600);
    await client.builds.resume(id);
    for await (const _ of client.builds.follow(id)) {
      // Until the build has ended.
    }
    await vi.waitFor(() => expect(existsSync(pathOf(id))).toBe(false), { timeout: 60_000 });
    await end(child, "SIGTERM");
    expect(await log).not.toContain("t0p");
    for (const name of readdirSync(state, { recursive: true, withFileTypes: true })) {
      if (name.isFile()) expect(readFileSync(join(name.parentPath, name.name), "latin1")).not.toContain("t0p");
    }
  });
});

test("a second server on the state directory or on the SQLite file is refused; what there is belongs to its user", async () => {
  const umask = process.umask(0);
  onTestFinished(() => void process.umask(umask));
  const { child } = await start();
  const first = new RegExp(`another server \\(process ${child.pid}\\) uses the`);
  const same = await start();
  expect(same.said.error).toMatchObject({ code: "server_running", message: expect.stringMatching(first) });
  expect(await end(same.child, "SIGTERM")).toBe(1);
  const state = join(directory, "state");
  const elsewhere = { SLIPWAY_STATE_DIR: join(directory, "other"), DATABASE_URL: `file:${join(state, "slipway.db")}` };
  const { error } = (await start(elsewhere)).said;
  expect(error).toMatchObject({
    code: "server_running",
    message: expect.stringMatching(/uses the database .*slipway.db$/),
  });
  const sockets = readdirSync(state, { withFileTypes: true }).filter((file) => file.isSocket());
  for (const name of ["server.lock", "slipway.db", "run-secret", "server-name", ...sockets.map((one) => one.name)]) {
    expect({ name, mode: statSync(join(state, name)).mode & 0o077 }).toEqual({ name, mode: 0 });
  }
});

describe("what is wrong is told at the start", () => {
  test("settings, all of them", async () => {
    const { said, log } = await start({ MAX_PARALLEL_SANDBOXES: "many", REDIS_URL: "x" });
    expect(said.error).toMatchObject({
      code: "invalid_settings",
      message: expect.stringMatching(/REDIS_URL.*MAX_PARALLEL/s),
    });
    expect(await log).toContain("REDIS_URL");
  });

  test("a database of a newer version", async () => {
    const path = join(directory, "state", "slipway.db");
    const database = openDatabase({ url: `file:${path}` });
    await openStore(database, { now: () => 0 });
    await database[Symbol.asyncDispose]();
    const file = new DatabaseSync(path);
    file.exec("update schema_versions set version = 9999");
    file.close();
    expect((await start()).said.error).toMatchObject({
      code: "database_newer",
      message: expect.stringContaining("9999"),
    });
  });

  test("an address where no Restate is", async () => {
    const { said } = await start({
      RESTATE_URL: await closedAddress("http"),
      SLIPWAY_RESTATE_KEY: `publickeyv1_${"a".repeat(43)}`,
    });
    expect(said.error).toMatchObject({ code: "loop_unavailable", action: expect.stringContaining("RESTATE_URL") });
  });

  test("an address where no Redis is; builds go on without it", async () => {
    const { said, child, log } = await start({ REDIS_URL: await closedAddress("redis") });
    expect(said).toMatchObject({ ready: true });
    await end(child, "SIGTERM");
    expect(await log).toMatch(/REDIS_URL: .*ECONNREFUSED.*; builds go on over the database/);
  });

  test("a state directory in which no sandbox can be", async () => {
    const state = join(directory, "longer than a sandbox has room for".replaceAll(" ", "-"));
    const real = { SANDBOX_PROVIDER: "local", SLIPWAY_SIMULATION_SPEED: undefined };
    const { said } = await start({ SLIPWAY_STATE_DIR: state, ...real });
    expect(said.error).toMatchObject({ code: "invalid_settings", message: expect.stringContaining(state) });
  });

  test("a state directory that can not be made", async () => {
    const file = join(directory, "file");
    writeFileSync(file, "");
    const { said } = await start({ SLIPWAY_STATE_DIR: join(file, "state") });
    expect(said.error).toMatchObject({
      code: "invalid_settings",
      message: expect.stringContaining("SLIPWAY_STATE_DIR"),
    });
  });
});

async function closedAddress(scheme: string): Promise<string> {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as { port: number };
  server.close();
  await once(server, "close");
  return `${scheme}://127.0.0.1:${port}`;
}
