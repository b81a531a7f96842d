import { once } from "node:events";
import { globSync, openSync, readFileSync, renameSync, statSync, writeFileSync, writeSync } from "node:fs";
import { rm } from "node:fs/promises";
import { createServer as createHttpServer } from "node:http";
import { createServer } from "node:net";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { SlipwayError } from "@slipway/contract";
import { describe, expect, test, vi } from "vitest";
import { base58, openIdentity, writeIdentity } from "./identity.ts";
import { type KeptRestate, startRestate } from "./keep-restate.ts";
import { isAlive, type ProcessIdentity, parseStat } from "./process.ts";
import { connectRestate } from "./restate.ts";
import { checkHealth, createRestateApi } from "./restate-api.ts";
import { boundLog, freePorts } from "./restate-process.ts";
import { loseData, startFixture, temporaryDirectory } from "./testing.ts";

const processOf = (pid: number) =>
  parseStat(readFileSync(`/proc/${pid}/stat`, "latin1")) as NonNullable<ReturnType<typeof parseStat>>;
/** A stop reaches one thread of a process first: until that one runs, the others go on. */
const threadStates = (pid: number) =>
  new Set(
    globSync(`/proc/${pid}/task/*/stat`).map((path) => readFileSync(path, "latin1").replace(/^.*\) (\w) .*$/s, "$1")),
  );
const restarted = (restate: KeptRestate) => new Promise<void>((resolve) => restate.onRestart(resolve));
const code = async (promise: Promise<unknown>) =>
  await promise.then(
    () => "no error",
    (error) => (error instanceof SlipwayError ? error.code : error),
  );

test("a Restate that was started answers on loopback, keeps its key to its user, and is gone after disposal", async () => {
  using directory = temporaryDirectory();
  let running: ProcessIdentity;
  {
    await using restate = await startRestate({ directory: directory.path });
    running = processOf(restate.pid);
    expect(restate.ingressUrl).toMatch(/^http:\/\/127\.0\.0\.1:\d+\/$/);
    expect(restate.identityKey).toMatch(/^publickeyv1_/);
    await checkHealth(restate, 20_000);
    expect(statSync(join(directory.path, "identity.pem")).mode & 0o777).toBe(0o600);
    expect(readFileSync(`/proc/${restate.pid}/cmdline`, "utf8")).toContain("restate-server");
  }
  expect(isAlive(running)).toBe(false);
});

test("a killed Restate comes back at its address, with its data", async () => {
  using directory = temporaryDirectory();
  await using restate = await startRestate({ directory: directory.path });
  const { pid, ingressUrl } = restate;
  const back = restarted(restate);
  process.kill(pid, "SIGKILL");
  await back;
  expect(restate).toMatchObject({ ingressUrl });
  expect(restate.pid).not.toBe(pid);
  await checkHealth(restate, 20_000);
});

test("a Restate whose directory was deleted comes back with the same key", async () => {
  using directory = temporaryDirectory();
  await using restate = await startRestate({ directory: directory.path });
  const back = restarted(restate);
  process.kill(restate.pid, "SIGKILL");
  // In one step: what is started meanwhile is not deleted with it.
  using elsewhere = temporaryDirectory();
  renameSync(directory.path, join(elsewhere.path, "deleted"));
  await back;
  expect((await openIdentity(directory.path)).publicKey).toBe(restate.identityKey);
  await checkHealth(restate, 20_000);
});

test("a Restate whose data are deleted while it runs is started anew", async () => {
  using directory = temporaryDirectory();
  await using restate = await startRestate({ directory: directory.path });
  const { pid } = restate;
  const back = restarted(restate);
  loseData(directory.path);
  await back;
  expect(restate.pid).not.toBe(pid);
  await checkHealth(restate, 20_000);
});

test("a Restate that can not read its data starts without them", async () => {
  using directory = temporaryDirectory();
  const { [Symbol.asyncDispose]: end } = await startRestate({ directory: directory.path });
  await end();
  const broken = globSync("data/**/CURRENT", { cwd: directory.path });
  expect(broken).not.toEqual([]);
  for (const path of broken) writeFileSync(join(directory.path, path), "nonsense");
  await using restate = await startRestate({ directory: directory.path });
  await checkHealth(restate, 20_000);
});

test("a Restate whose port was taken meanwhile comes back at another", async () => {
  using directory = temporaryDirectory();
  await using restate = await startRestate({ directory: directory.path });
  const { ingressUrl } = restate;
  const back = restarted(restate);
  process.kill(restate.pid, "SIGKILL");
  await using server = createServer((socket) => void socket.resume().on("error", () => undefined));
  for (;;) {
    server.listen(Number(new URL(ingressUrl).port), "127.0.0.1");
    if (await once(server, "listening").catch(() => undefined)) break;
  }
  await back;
  expect(restate.ingressUrl).not.toBe(ingressUrl);
  await checkHealth(restate, 20_000);
});

describe("a Restate that has outlived its server", () => {
  test("is taken up by the next one, which also ends it", async () => {
    using directory = temporaryDirectory();
    using server = startFixture("keep", directory.path);
    const left = await server.line<{ pid: number; identityKey: string; ingressUrl: string }>();
    server.kill();
    const former = processOf(left.pid);
    {
      await using restate = await startRestate({ directory: directory.path });
      expect(restate).toMatchObject(left);
      const back = restarted(restate);
      process.kill(left.pid, "SIGKILL");
      await back;
      expect(restate.pid).not.toBe(left.pid);
    }
    expect(isAlive(former)).toBe(false);
  });

  test("is replaced when it does not answer", async () => {
    using directory = temporaryDirectory();
    using server = startFixture("keep", directory.path);
    const { pid } = await server.line<{ pid: number }>();
    server.kill();
    const former = processOf(pid);
    process.kill(pid, "SIGSTOP");
    await vi.waitFor(() => expect(threadStates(pid)).toEqual(new Set(["T"])));
    await using restate = await startRestate({ directory: directory.path });
    expect(restate.pid).not.toBe(pid);
    expect(isAlive(former)).toBe(false);
  });

  test("is replaced when it signs with another key", async () => {
    using directory = temporaryDirectory();
    using server = startFixture("keep", directory.path);
    const { pid, identityKey } = await server.line<{ pid: number; identityKey: string }>();
    server.kill();
    await rm(join(directory.path, "identity.pem"));
    await using restate = await startRestate({ directory: directory.path });
    expect(restate.pid).not.toBe(pid);
    expect(restate.identityKey).not.toBe(identityKey);
  });
});

test("a note that names a process of another start is not believed, and the process is left alone", async () => {
  using directory = temporaryDirectory();
  const stat = readFileSync("/proc/self/stat", "latin1").trim().split(" ");
  stat[21] = "1";
  const note = { ports: await freePorts(), identityKey: (await openIdentity(directory.path)).publicKey };
  writeFileSync(join(directory.path, "restate.process"), `${stat.join(" ")}\n${JSON.stringify(note)}\n`);
  await using restate = await startRestate({ directory: directory.path });
  expect(restate.pid).not.toBe(process.pid);
});

test.each(["", "1", "nonsense\nnonsense\n", `${"1 ".repeat(60)}\n{"ports":{}}\n`])(
  "a note of %j is no hindrance",
  async (note) => {
    using directory = temporaryDirectory();
    writeFileSync(join(directory.path, "restate.process"), note);
    await using restate = await startRestate({ directory: directory.path });
    await checkHealth(restate, 20_000);
  },
);

test.each([
  ["", ""],
  ["000001", "112"],
  ["0000", "11"],
  ["48656c6c6f20576f726c6421", "2NEpo7TZRRrLZSi2U"],
])("the bytes %j are %j in base 58", (hex, text) => {
  expect(base58(Buffer.from(hex, "hex"))).toBe(text);
});

test("a key file that was cut short is made anew", async () => {
  using directory = temporaryDirectory();
  const identity = await openIdentity(directory.path);
  const path = await writeIdentity(directory.path, identity);
  expect(await openIdentity(directory.path)).toEqual(identity);
  writeFileSync(path, identity.privatePem.slice(0, 40));
  expect((await openIdentity(directory.path)).publicKey).not.toBe(identity.publicKey);
});

test("a directory may have a long path", async () => {
  using directory = temporaryDirectory();
  await using restate = await startRestate({ directory: join(directory.path, "long".repeat(50)) });
  await checkHealth(restate, 20_000);
});

test("a missing binary, and a directory that can not be, are told", async () => {
  using directory = temporaryDirectory();
  expect(await code(startRestate({ directory: directory.path, program: "/nowhere/restate-server" }))).toBe(
    "component_missing",
  );
  writeFileSync(join(directory.path, "file"), "");
  expect(await code(startRestate({ directory: join(directory.path, "file/below") }))).toBe("invalid_settings");
});

test("a program that ends at once is told with its last words", async () => {
  using directory = temporaryDirectory();
  const program = join(directory.path, "program");
  writeFileSync(program, "#!/bin/sh\necho I am no Restate >&2\nexit 3\n", { mode: 0o700 });
  await expect(startRestate({ directory: directory.path, program })).rejects.toMatchObject({
    code: "loop_unavailable",
    message: expect.stringMatching(/exit code 3.*I am no Restate/s),
  });
});

test("a log that is too long is cut, and its writer goes on", async () => {
  using directory = temporaryDirectory();
  const path = join(directory.path, "restate.log");
  const log = openSync(path, "a");
  writeSync(log, "a".repeat(100));
  await boundLog(directory.path, 100);
  expect(readFileSync(path, "utf8")).toHaveLength(100);
  writeSync(log, "b");
  await boundLog(directory.path, 100);
  writeSync(log, "c");
  expect(readFileSync(path, "utf8")).toBe("c");
  expect(readFileSync(`${path}.1`, "utf8")).toBe(`${"a".repeat(100)}b`);
});

describe("a Restate by its address", () => {
  test("that is no address is refused, with every mistake", async () => {
    await expect(
      connectRestate({ url: "ftp://x", adminUrl: "nonsense", identityKey: "publickeyv1_0" }),
    ).rejects.toMatchObject({
      code: "invalid_settings",
      message: expect.stringMatching(/RESTATE_URL.*RESTATE_ADMIN_URL.*SLIPWAY_RESTATE_KEY/s),
    });
  });

  test("where nothing listens is told", async () => {
    const { ingress } = await freePorts();
    const url = `http://127.0.0.1:${ingress}`;
    await expect(connectRestate({ url, adminUrl: url })).rejects.toMatchObject({
      code: "loop_unavailable",
      message: expect.stringContaining("ECONNREFUSED"),
    });
  });

  test("where something never answers is told in time", async () => {
    await using mute = createServer((socket) => void socket.resume());
    await once(mute.listen(0, "127.0.0.1"), "listening");
    const { port } = mute.address() as { port: number };
    const url = `http://127.0.0.1:${port}`;
    await expect(checkHealth({ ingressUrl: url, adminUrl: url }, 100)).rejects.toMatchObject({
      code: "loop_unavailable",
      message: expect.stringContaining("in time"),
    });
  });

  test("where an answer begins and never ends is told in time", async () => {
    const slow = createHttpServer((_, response) => void response.writeHead(200).write("{"));
    await once(slow.listen(0, "127.0.0.1"), "listening");
    const { port } = slow.address() as { port: number };
    const url = `http://127.0.0.1:${port}`;
    await expect(checkHealth({ ingressUrl: url, adminUrl: url }, 100)).rejects.toMatchObject({
      code: "loop_unavailable",
      message: expect.stringContaining("in time"),
    });
    slow.closeAllConnections();
    await slow[Symbol.asyncDispose]();
  });

  test("that is away for a while is waited for, and not forever", async () => {
    const { ingress } = await freePorts();
    const url = `http://127.0.0.1:${ingress}/`;
    const api = createRestateApi({ ingressUrl: url, adminUrl: url }, { limitMs: 20_000 });
    const ring = api.resolveAwakeable("bell");
    await delay(100);
    let answers = 0;
    const server = createHttpServer((_, response) => response.writeHead(++answers < 3 ? 503 : 202).end());
    await once(server.listen(ingress, "127.0.0.1"), "listening");
    await ring;
    server.closeAllConnections();
    await server[Symbol.asyncDispose]();
    expect(answers).toBe(3);
    const impatient = createRestateApi({ ingressUrl: url, adminUrl: url }, { limitMs: 200 });
    expect(await code(impatient.resolveAwakeable("bell"))).toBe("loop_unavailable");
  });
});
