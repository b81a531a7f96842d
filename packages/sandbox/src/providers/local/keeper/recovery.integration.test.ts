import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setImmediate } from "node:timers/promises";
import { newId } from "@slipway/contract";
import { afterAll, beforeAll, expect, test, vi } from "vitest";
import { readRecords, writeRecord } from "../../../keeper/record.ts";
import type { OwnedSandbox, Sandbox } from "../../../provider.ts";
import { run } from "../../../run.ts";
import { createLocalProvider } from "../index.ts";
import { layoutOf } from "../layout.ts";
import { detectCgroups } from "../limits/cgroup.ts";
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

async function killKeeper(): Promise<void> {
  for (const pid of keepersOf(local.stateDir)) process.kill(pid, "SIGKILL");
  await vi.waitFor(() => expect(keepersOf(local.stateDir)).toEqual([]));
}

/** As a keeper leaves it that is killed in the middle of a snapshot, or of a sleep or a wake. */
function setFrozen(sandbox: Sandbox, frozen: boolean): boolean {
  const files = recordOf(sandbox).cgroups.flatMap((directory) => [
    { path: join(directory, "cgroup.freeze"), value: frozen ? "1" : "0" },
    { path: join(directory, "freezer.state"), value: frozen ? "FROZEN" : "THAWED" },
  ]);
  const file = files.find(({ path }) => existsSync(path));
  if (file !== undefined) writeFileSync(file.path, file.value);
  return file !== undefined;
}

test("a running sandbox that a killed keeper left frozen lives on", async () => {
  await using sandbox = await local.provider.create(small);
  await killKeeper();
  setFrozen(sandbox, true);
  expect(await sandbox.info()).toMatchObject({ state: "running" });
  expect((await run(sandbox, "echo here")).stdout).toBe("here\n");
});

test("a caller whose keeper died sees that the next keeper put the sandbox to sleep", async () => {
  await using sandbox = await local.provider.create(small);
  await run(sandbox, ["true"]);
  await killKeeper();
  await using other = createLocalProvider({ stateDir: local.stateDir, environment: process.env });
  await (await other.get(sandbox.id)).sleep();
  const signal = AbortSignal.timeout(60_000);
  expect((await run(sandbox, "echo awake", { signal })).stdout).toBe("awake\n");
});

test("a start that a keeper's death cut short has a lifetime of its own", async () => {
  await using sandbox = await local.provider.create(small);
  await sandbox.stop();
  const past = recordOf(sandbox);
  await killKeeper();
  writeRecord(recordPath(sandbox), { ...past, expiresAt: Date.now() - 1000 });
  const starting = sandbox.start();
  while (recordOf(sandbox).state === "stopped") await setImmediate();
  expect(recordOf(sandbox).expiresAt).toBeGreaterThan(Date.now());
  await starting;
});

test("a sandbox whose sleep ran out leaves its snapshot, though its keeper died after the stop", async () => {
  await using sandbox = await local.provider.create(small);
  await sandbox.files.write("/workspace/kept", "kept");
  await sandbox.stop();
  const stopped = recordOf(sandbox);
  await killKeeper();
  const owedSnapshot = newId("snp");
  writeRecord(recordPath(sandbox), { ...stopped, reason: "slept_out", owedSnapshot });
  await local.provider.reconcile();
  await vi.waitFor(() => expect(recordOf(sandbox).owedSnapshot).toBeNull());
  expect(await local.provider.snapshots.list()).toMatchObject([{ id: owedSnapshot, name: "slept-out" }]);
  await local.provider.snapshots.delete(owedSnapshot);
});

test("sandboxes that an earlier version recorded start, with their network and without tools", async () => {
  await using sandbox = await local.provider.create({ ...small, network: { domains: ["example.com"] } });
  await sandbox.stop();
  await killKeeper();
  const { network: _network, tools: _tools, owedSnapshot: _owed, ...record } = recordOf(sandbox);
  const { tools: _names, ...request } = record.request;
  writeRecord(recordPath(sandbox), { ...record, request });
  expect(await sandbox.info()).toMatchObject({ tools: [], network: { domains: ["example.com"] } });
  await sandbox.start();
  expect((await run(sandbox, "echo up")).stdout).toBe("up\n");
});

test("a create that is aborted after it was done leaves nothing", async () => {
  const before = (await local.provider.list()).length;
  const records = () => readRecords<SandboxRecord>(layoutOf(local.stateDir).records.sandboxes);
  const abortWhenDone = async () => {
    const controller = new AbortController();
    const creating = local.provider.create(small, { signal: controller.signal });
    while (records().length === before) await setImmediate();
    // Nothing is heard of the answer meanwhile.
    while (records().some(({ state }) => state === "creating"));
    controller.abort();
    return await creating.catch((error: unknown) => error);
  };
  let end = await abortWhenDone();
  // On a busy machine the answer may be there before the record was looked at.
  for (; !(end instanceof Error); end = await abortWhenDone()) await (end as OwnedSandbox).destroy();
  expect(end).toMatchObject({ code: "aborted" });
  expect(await local.provider.list()).toHaveLength(before);
});

test("a snapshot that is aborted, before or after it was taken, is not kept", async () => {
  await using sandbox = await local.provider.create(small);
  const { snapshots } = layoutOf(local.stateDir).records;
  for (const isTaken of [() => true, () => readRecords(snapshots).length > 0]) {
    const controller = new AbortController();
    const taking = sandbox.snapshot({ signal: controller.signal });
    await setImmediate();
    // Nothing is heard of the answer meanwhile.
    while (!isTaken());
    controller.abort();
    await expect(taking).rejects.toMatchObject({ code: "aborted" });
    await sandbox.keepAlive(1000);
    expect(await local.provider.snapshots.list()).toEqual([]);
  }
});

test("a destroy that is sent again to the next keeper answers, though the last one had finished it", async () => {
  const sandbox = await local.provider.create(small);
  const destroying = sandbox.destroy();
  await setImmediate();
  // Its files are still there to be removed, so it cannot have answered.
  while (existsSync(recordPath(sandbox)));
  await killKeeper();
  expect(await destroying).toMatchObject({ sandbox: sandbox.id, processesGone: true, filesGone: true });
});

test("a sandbox whose destroy was cut short does not come back without its files", async () => {
  const sandbox = await local.provider.create(small);
  await run(sandbox, "seq 3000 | sed s,^,d, | xargs mkdir");
  const [keeper] = keepersOf(local.stateDir);
  const destroying = sandbox.destroy();
  destroying.catch(() => undefined);
  const upper = layoutOf(local.stateDir).box(sandbox.id).upper;
  const full = () => existsSync(join(upper, "workspace/d1")) && existsSync(join(upper, "workspace/d3000"));
  while (full()) await setImmediate();
  process.kill(keeper ?? 0, "SIGSTOP");
  const recorded = existsSync(recordPath(sandbox));
  process.kill(keeper ?? 0, "SIGCONT");
  expect(recorded).toBe(false);
  await destroying;
});

test("a key whose sandbox is being destroyed makes another sandbox", async () => {
  const request = { ...small, idempotencyKey: "twice" };
  const first = await local.provider.create(request);
  const destroying = first.destroy();
  await using second = await local.provider.create(request);
  expect(second.id).not.toBe(first.id);
  await destroying;
});

test("previews that are asked for while a sandbox is destroyed leave no record of it", async () => {
  const sandbox = await local.provider.create({ ...small, ports: [3000, 3001, 3002] });
  const destroying = sandbox.destroy();
  const previews = [3000, 3001, 3002].map((port) => sandbox.previewUrl(port).catch(() => undefined));
  await Promise.all([destroying, ...previews]);
  expect(existsSync(recordPath(sandbox))).toBe(false);
});

const { mechanisms } = await detectCgroups();
const hog = "exec dd if=/dev/zero of=/dev/null bs=600M count=1";

if (mechanisms.memory === "none") {
  test("without a memory controller, a process is refused more than the limit", async () => {
    await using sandbox = await local.provider.create(small);
    expect((await run(sandbox, hog)).exit).toMatchObject({ reason: "exited", exitCode: 1 });
  });
} else {
  test("kills for want of memory are told again after a restart", async () => {
    await using sandbox = await local.provider.create(small);
    const told = async (count: number) => {
      let seen = 0;
      for await (const { type } of local.provider.events({
        sandbox: sandbox.id,
        signal: AbortSignal.timeout(60_000),
      })) {
        if (type === "sandbox.out_of_memory" && ++seen === count) break;
      }
      return seen;
    };
    expect((await run(sandbox, hog)).exit.reason).toBe("out_of_memory");
    expect(await told(1)).toBe(1);
    await sandbox.stop();
    await sandbox.start();
    expect((await run(sandbox, hog)).exit.reason).toBe("out_of_memory");
    expect(await told(2)).toBe(2);
  });
}
