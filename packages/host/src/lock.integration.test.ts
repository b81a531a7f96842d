import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { chmodSync, mkdtempSync, rmSync, statSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { beforeEach, expect, onTestFinished, test } from "vitest";
import { lockHolder, takeLock } from "./lock.ts";

const fixture = fileURLToPath(new URL("lock-fixture.ts", import.meta.url));

let path: string;
beforeEach(() => {
  const directory = mkdtempSync("/var/tmp/slipway-lock-");
  onTestFinished(() => rmSync(directory, { recursive: true }));
  path = join(directory, "a.lock");
});

/** Another process that asks for the lock, and what it says. */
async function another(options: { readonly uid?: number } = {}): Promise<{ child: ChildProcess; said: string }> {
  const child = spawn(process.execPath, [fixture, path], { ...options, stdio: ["ignore", "pipe", "inherit"] });
  onTestFinished(() => void child.kill("SIGKILL"));
  const [said] = await once(child.stdout, "data");
  return { child, said: String(said).trim() };
}

test("of many starters exactly one gets the lock, and it can be told who", async () => {
  const starters = await Promise.all(Array.from({ length: 6 }, () => another()));
  const winners = starters.filter(({ said }) => said === "taken");
  expect(winners).toHaveLength(1);
  expect(starters.filter(({ said }) => said === "held")).toHaveLength(5);
  expect(lockHolder(path)).toBe(winners[0]?.child.pid);
  expect(await takeLock(path)).toBeUndefined();
});

test("a killed holder frees it at once", async () => {
  const { child, said } = await another();
  expect(said).toBe("taken");
  const ended = once(child, "exit");
  child.kill("SIGKILL");
  await ended;
  using lock = await takeLock(path);
  expect(lock).toBeDefined();
});

test("whoever waits gets it when its holder ends", async () => {
  const { child } = await another();
  const waiting = takeLock(path, { waitMs: 30_000 });
  child.kill("SIGKILL");
  using lock = await waiting;
  expect(lock).toBeDefined();
});

test("a second user in the same process does not get it, and does not free it for others by asking", async () => {
  const lock = await takeLock(path);
  expect(await takeLock(path)).toBeUndefined();
  expect((await another()).said).toBe("held");
  lock?.[Symbol.dispose]();
  expect((await another()).said).toBe("taken");
});

const asRoot = process.getuid?.() === 0 ? test : () => {};
asRoot("another user of the machine can neither hold nor block it", async () => {
  chmodSync(join(path, ".."), 0o755);
  {
    using lock = await takeLock(path);
    expect(lock).toBeDefined();
  }
  expect(statSync(path).mode & 0o777).toBe(0o600);
  expect((await another({ uid: 65_534 })).said).toBe("failed");
  using lock = await takeLock(path);
  expect(lock).toBeDefined();
});
