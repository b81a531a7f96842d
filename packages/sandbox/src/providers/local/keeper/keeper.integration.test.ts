import { mkdtempSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { SandboxEvent, SandboxId } from "@slipway/contract";
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import { writeRecord } from "../../../keeper/record.ts";
import type { Sandbox } from "../../../provider.ts";
import { readText, run } from "../../../run.ts";
import { createLocalProvider } from "../index.ts";
import { layoutOf } from "../layout.ts";
import type { SandboxRecord } from "../record.ts";
import { keepersOf, type LocalSetup, setUpLocal } from "../testing.ts";

let local: LocalSetup;
beforeAll(() => {
  local = setUpLocal();
});
afterAll(async () => await local[Symbol.asyncDispose]());

const small = { cpu: 1, memoryMb: 256, diskMb: 256 } as const;

function recordPath({ id }: Sandbox): string {
  return layoutOf(local.stateDir).sandboxRecord(id);
}

function recordOf(sandbox: Sandbox): SandboxRecord {
  return JSON.parse(readFileSync(recordPath(sandbox), "utf8")) as SandboxRecord;
}

function killKeeper(): void {
  const [pid] = keepersOf(local.stateDir);
  if (pid === undefined) throw new Error("no keeper runs");
  process.kill(pid, "SIGKILL");
}

async function eventsOf(sandbox: SandboxId, until: (event: SandboxEvent) => boolean): Promise<SandboxEvent[]> {
  const seen: SandboxEvent[] = [];
  for await (const event of local.provider.events({ sandbox })) {
    seen.push(event);
    if (until(event)) break;
  }
  return seen;
}

describe("a keeper that is killed", () => {
  test("is replaced by the next call; its sandboxes ran on and are adopted", async () => {
    await using sandbox = await local.provider.create(small);
    const exec = await sandbox.exec({ shell: "echo one; sleep 1; echo two" });
    killKeeper();
    await vi.waitFor(() => expect(keepersOf(local.stateDir)).toEqual([]));
    expect(await exec.wait()).toMatchObject({ exitCode: 0, stdoutBytes: 8 });
    expect(await sandbox.info()).toMatchObject({ state: "running" });
    await eventsOf(sandbox.id, ({ type }) => type === "sandbox.adopted");
    expect(keepersOf(local.stateDir)).toHaveLength(1);
  });

  test("leaves a sleeping sandbox asleep, and the next use wakes it", async () => {
    await using sandbox = await local.provider.create(small);
    await sandbox.sleep();
    killKeeper();
    expect(await sandbox.info()).toMatchObject({ state: "sleeping" });
    expect((await run(sandbox, "echo awake")).stdout).toBe("awake\n");
  });

  test("ends a sandbox late whose lifetime passed meanwhile", async () => {
    await using sandbox = await local.provider.create({ ...small, lifetimeMs: 60_000 });
    killKeeper();
    await vi.waitFor(() => expect(keepersOf(local.stateDir)).toEqual([]));
    writeRecord(recordPath(sandbox), { ...recordOf(sandbox), expiresAt: Date.now() - 1000 });
    await vi.waitFor(async () => expect(await sandbox.info()).toMatchObject({ state: "stopped", reason: "expired" }));
  });

  test("while a sandbox died is followed by one that finds it lost, and can start it again", async () => {
    await using sandbox = await local.provider.create(small);
    await sandbox.files.write("/workspace/kept", "kept");
    killKeeper();
    process.kill(recordOf(sandbox).process?.pid ?? 0, "SIGKILL");
    expect(await sandbox.info()).toMatchObject({ state: "stopped", reason: "provider_lost" });
    await sandbox.start();
    expect(await readText(sandbox.files, "/workspace/kept")).toBe("kept");
  });
});

test("a sandbox whose pid 1 is killed from outside is stopped as killed, its commands are lost", async () => {
  await using sandbox = await local.provider.create(small);
  const exec = await sandbox.exec({ argv: ["sleep", "60"] });
  process.kill(recordOf(sandbox).process?.pid ?? 0, "SIGKILL");
  expect(await exec.wait()).toMatchObject({ reason: "lost", exitCode: null });
  await vi.waitFor(async () => expect(await sandbox.info()).toMatchObject({ state: "stopped", reason: "killed" }));
});

test("events that are listened to without a signal end with their provider", async () => {
  const provider = createLocalProvider({ stateDir: local.stateDir, environment: process.env });
  await (await provider.create(small)).destroy();
  const { promise: listening, resolve } = Promise.withResolvers<void>();
  const listened = (async () => {
    for await (const _event of provider.events()) resolve();
  })();
  await listening;
  await provider[Symbol.asyncDispose]();
  await listened;
});

test("callers that come at the same time share one keeper", async () => {
  await using own = setUpLocal();
  const providers = Array.from({ length: 4 }, () =>
    createLocalProvider({ stateDir: own.stateDir, environment: process.env }),
  );
  const sandboxes = await Promise.all(providers.map((provider) => provider.create(small)));
  expect(keepersOf(own.stateDir)).toHaveLength(1);
  expect(await own.provider.list()).toHaveLength(4);
  await Promise.all(sandboxes.map((sandbox) => sandbox.destroy()));
  await Promise.all(providers.map((provider) => provider[Symbol.asyncDispose]()));
});

test("a keeper ends some time after the last sandbox and the last caller", async () => {
  const own = setUpLocal();
  await (await own.provider.create(small)).destroy();
  await own.provider[Symbol.asyncDispose]();
  await vi.waitFor(() => expect(keepersOf(own.stateDir)).toEqual([]));
  await own[Symbol.asyncDispose]();
});

test("with less disk free than is to stay free, creates are refused and a sandbox that has written is stopped", async () => {
  await using own = setUpLocal();
  const sandbox = await own.provider.create(small);
  const writer = await sandbox.exec({ shell: "head -c 20000000 /dev/zero > file; echo done; sleep 600" });
  for await (const _ of writer.output()) break;
  for (const pid of keepersOf(own.stateDir)) process.kill(pid, "SIGKILL");
  await using short = createLocalProvider({ stateDir: own.stateDir, environment: process.env, minFreeMb: 2 ** 33 });
  await expect(short.create(small)).rejects.toMatchObject({ code: "out_of_disk" });
  const isStopped = async () =>
    expect(await sandbox.info()).toMatchObject({ state: "stopped", reason: "host_out_of_disk" });
  await vi.waitFor(isStopped, { timeout: 60_000 });
});

test("layers that pile up are merged, and every file is kept", async () => {
  await using sandbox = await local.provider.create(small);
  for (let i = 0; i < 30; i++) {
    await run(sandbox, `echo ${i} > file-${i}; rm -f file-${i - 2}; mkdir -p dir/${i}`);
    await sandbox.stop();
    await (await sandbox.fork(small)).destroy();
    await sandbox.start();
  }
  expect(recordOf(sandbox).lowers.length).toBeLessThan(30);
  const { stdout } = await run(sandbox, "cat file-*; ls dir | wc -l");
  expect(stdout).toBe("28\n29\n30\n");
});

test("layers that nothing uses are removed, those of a fork are not", async () => {
  await using own = setUpLocal();
  const layers = () => readdirSync(layoutOf(own.stateDir).layers).length;
  const source = await own.provider.create(small);
  const before = layers();
  await source.files.write("/workspace/kept", "kept");
  await source.stop();
  await using fork = await source.fork();
  await source.destroy();
  await own.provider.reconcile();
  expect(layers()).toBe(before + 1);
  expect(await readText(fork.files, "/workspace/kept")).toBe("kept");
  await fork.destroy();
  await own.provider.reconcile();
  expect(layers()).toBe(before);
});

test("a keeper's arguments show nothing of the environment it gets, at its very start neither", async () => {
  const directory = mkdtempSync(join(tmpdir(), "slipway-arguments-"));
  const seen = join(directory, "seen");
  const recorder = join(directory, "recorder.cjs");
  const path = JSON.stringify(seen);
  writeFileSync(recorder, `const fs = require("fs"); fs.writeFileSync(${path}, fs.readFileSync("/proc/self/cmdline"))`);
  const SOME_API_KEY = "key-that-nobody-else-may-read";
  await using own = setUpLocal({ ...process.env, SOME_API_KEY, NODE_OPTIONS: `--require=${recorder}` });
  await own.provider.reconcile();
  const line = readFileSync(seen, "utf8");
  expect(line).toContain(own.stateDir);
  expect(line).not.toContain(SOME_API_KEY);
  expect(line).not.toContain("PATH");
  const [pid] = keepersOf(own.stateDir);
  expect(readFileSync(`/proc/${pid}/environ`, "utf8")).toContain(SOME_API_KEY);
});
