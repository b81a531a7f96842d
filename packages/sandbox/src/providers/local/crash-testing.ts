import { type ChildProcess, spawn } from "node:child_process";
import { createHash } from "node:crypto";
import { once } from "node:events";
import { readdirSync, readFileSync } from "node:fs";
import { createInterface } from "node:readline";
import { setTimeout as delay } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { type ExecId, hasCode, type SandboxId } from "@slipway/contract";
import { expect, test, vi } from "vitest";
import { liveStates } from "../../keeper/record.ts";
import type { Sandbox, SandboxProvider } from "../../provider.ts";
import { readBytes } from "../../run.ts";
import type { Promised } from "./crash-fixture.ts";
import { findSandboxProcesses } from "./keeper/boxes/survey.ts";
import { layoutOf } from "./layout.ts";
import { keepersOf, setUpLocal } from "./testing.ts";

const latestKillMs = 700;

export function testKills(kills: number): void {
  test("killing the coordinator at random moments, its keeper too, loses nothing and leaves nothing without an owner", async () => {
    await using local = setUpLocal();
    for (let round = 0; round < kills; round++) {
      const moment = pseudoRandom(round) * latestKillMs;
      const promised = await workUntilKilled(local.stateDir, moment, round % 3 === 0);
      await expectKept(local.provider, promised).catch((error: unknown) => {
        throw new Error(`round ${round}, killed after ${moment} ms: ${(error as Error).message}`, { cause: error });
      });
      await expectOwned(local.provider, local.stateDir);
      if (round % 5 === 4) await destroyAll(local.provider, local.stateDir);
    }
    await destroyAll(local.provider, local.stateDir);
  }, 900_000);
}

function pseudoRandom(round: number): number {
  return createHash("sha256").update(`${process.env["SLIPWAY_SEED"]} kill ${round}`).digest().readUInt32LE() / 2 ** 32;
}

async function workUntilKilled(stateDir: string, moment: number, alsoKeeper: boolean): Promise<Promised[]> {
  const worker = spawn(process.execPath, [fileURLToPath(new URL("crash-fixture.ts", import.meta.url)), stateDir], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  const promised: Promised[] = [];
  const lines = createInterface({ input: worker.stdout });
  lines.on("line", (line) => promised.push(JSON.parse(line) as Promised));
  await Promise.race([once(lines, "line"), failure(worker)]);
  await delay(moment);
  if (alsoKeeper) for (const pid of keepersOf(stateDir)) process.kill(pid, "SIGKILL");
  const closed = once(lines, "close");
  worker.kill("SIGKILL");
  await closed;
  return promised;
}

async function failure(worker: ChildProcess): Promise<never> {
  const [code] = await once(worker, "exit");
  throw new Error(`the workload ended by itself with ${code}`);
}

async function expectKept(provider: SandboxProvider, promised: readonly Promised[]): Promise<void> {
  const destroyed = new Set(promised.flatMap((each) => (each.type === "destroyed" ? [each.sandbox] : [])));
  const snapshots = new Set((await provider.snapshots.list()).map(({ id }) => id as string));
  for (const each of promised) {
    if (each.type === "snapshot") expect(snapshots, "snapshots").toContain(each.snapshot);
    if (!("sandbox" in each) || destroyed.has(each.sandbox)) continue;
    const sandbox = await settled(provider, each.sandbox as SandboxId);
    if (sandbox === null) continue;
    if (each.type === "started") await expectExec(sandbox, each);
    if (each.type === "written" && (await sandbox.info()).state === "running") {
      const content = await readBytes(sandbox.files, each.path);
      expect(createHash("sha256").update(content).digest("hex"), each.path).toBe(each.sha256);
    }
  }
}

/** Null for one whose destroy was under way when its caller died, and has gone through. */
async function settled(provider: SandboxProvider, id: SandboxId): Promise<Sandbox | null> {
  const sandbox = await provider.get(id).catch(() => null);
  // It has its turn behind the stop or destroy that the keeper had begun for the dead.
  const isThere = sandbox?.keepAlive(1).then(
    () => true,
    (error: unknown) => !hasCode(error, "sandbox_not_found"),
  );
  return (await isThere) === true ? sandbox : null;
}

/** Every byte and the exit, unless the workload stopped the sandbox before the command had ended. */
async function expectExec(
  sandbox: Sandbox,
  { exec: id, bytes, exitCode }: Promised & { type: "started" },
): Promise<void> {
  const exec = await sandbox.attach(id as ExecId);
  let output = "";
  for await (const chunk of exec.output()) if (chunk.type === "stdout") output += Buffer.from(chunk.data).toString();
  const exit = await exec.wait();
  const lines = Array.from({ length: bytes / 8 }, (_, i) => `${String(i).padStart(7, "0")}\n`).join("");
  if (exit.reason === "lost") {
    // The stop that ended it may still be on its way into the books.
    await vi.waitFor(async () => expect((await sandbox.info()).state, id).not.toBe("running"));
    expect(lines.startsWith(output), id).toBe(true);
  } else {
    expect({ output, exitCode: exit.exitCode }, id).toEqual({ output: lines, exitCode });
  }
}

/** What runs is what is recorded as running, once the keeper has done what it had begun for the dead. */
async function expectOwned(provider: SandboxProvider, stateDir: string): Promise<void> {
  // Without control groups, the process around a sandbox's pid 1 ends by itself, a moment after the sandbox.
  await vi.waitFor(async () => {
    const live = (await provider.list()).filter(({ state }) => liveStates.includes(state)).map(({ id }) => id);
    expect([...findSandboxProcesses(layoutOf(stateDir)).keys()].sort()).toEqual(live.sort());
  });
  expect((await provider.reconcile()).ended).toEqual([]);
  expect(readFileSync("/proc/self/mountinfo", "utf8")).not.toContain(stateDir);
}

async function destroyAll(provider: SandboxProvider, stateDir: string): Promise<void> {
  for (const { id } of await provider.list()) await (await provider.get(id)).destroy();
  for (const { id } of await provider.snapshots.list()) await provider.snapshots.delete(id);
  await provider.reconcile();
  const layout = layoutOf(stateDir);
  expect(readdirSync(layout.boxes)).toEqual([]);
  const madeUp = [/^host-[0-9a-f]+$/, /^rootfs-[0-9a-f]+$/].map((name) => expect.stringMatching(name));
  expect(readdirSync(layout.layers)).toEqual(madeUp);
  await vi.waitFor(() => expect(findSandboxProcesses(layout).size).toBe(0));
}
