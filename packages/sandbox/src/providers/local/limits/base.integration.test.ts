import { existsSync, mkdirSync, readdirSync, readFileSync, rmdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test, vi } from "vitest";
import type { Sandbox } from "../../../provider.ts";
import { run } from "../../../run.ts";
import { layoutOf } from "../layout.ts";
import type { SandboxRecord } from "../record.ts";
import { keepersOf, type LocalSetup, setUpLocal } from "../testing.ts";
import { baseName } from "./base.ts";
import { type Cgroups, detectCgroups, parseHierarchies } from "./cgroup.ts";

const { mechanisms } = await detectCgroups();
const small = { cpu: 1, memoryMb: 256, diskMb: 256 } as const;
const hierarchies = parseHierarchies(
  readFileSync("/proc/self/cgroup", "utf8"),
  readFileSync("/proc/self/mountinfo", "utf8"),
);
const places = [...new Set(hierarchies.flatMap(({ own, mountPoint }) => [own, mountPoint]))];

/** Of another state directory, so that its sweep may take those of a test. */
let other: Cgroups;
beforeAll(async () => {
  other = await (await detectCgroups()).prepare(baseName(`/test/${process.pid}`));
});
afterAll(() => other.leave());

function basesOf({ stateDir }: LocalSetup): string[] {
  return places.map((place) => join(place, baseName(stateDir))).filter((base) => existsSync(base));
}

function recordOf({ stateDir }: LocalSetup, { id }: Sandbox): SandboxRecord {
  return JSON.parse(readFileSync(layoutOf(stateDir).sandboxRecord(id), "utf8")) as SandboxRecord;
}

async function killKeeper({ stateDir }: LocalSetup): Promise<void> {
  for (const pid of keepersOf(stateDir)) process.kill(pid, "SIGKILL");
  await vi.waitFor(() => expect(keepersOf(stateDir)).toEqual([]));
}

/** The service and the launcher that stands by see a keeper's death a moment later. */
function hasProcesses(base: string): boolean {
  return [base, ...readdirSync(base).map((name) => join(base, name))]
    .filter((group) => existsSync(join(group, "cgroup.procs")))
    .some((group) => readFileSync(join(group, "cgroup.procs"), "utf8") !== "");
}

test("a killed keeper's groups go with the next keeper of another state directory", async () => {
  await using dead = setUpLocal();
  await (await dead.provider.create(small)).destroy();
  const bases = basesOf(dead);
  expect(bases.length > 0).toBe(mechanisms.freeze !== "none");
  await killKeeper(dead);
  rmSync(dead.stateDir, { recursive: true });
  for (const base of bases) await vi.waitFor(() => expect(existsSync(base) && hasProcesses(base)).toBe(false));
  await using next = setUpLocal();
  await (await next.provider.create(small)).destroy();
  await vi.waitFor(() => expect(basesOf(dead)).toEqual([]));
});

test("an idle keeper's groups stay, even those without processes, and it starts a sandbox", async () => {
  await using idle = setUpLocal();
  await (await idle.provider.create(small)).destroy();
  const groups = basesOf(idle).map((base) => join(base, "just-made"));
  for (const group of groups) mkdirSync(group);
  await other.removeAbandoned();
  expect(groups.filter((group) => !existsSync(group))).toEqual([]);
  for (const group of groups) rmdirSync(group);
  await other.removeAbandoned();
  await using sandbox = await idle.provider.create(small);
  expect((await run(sandbox, "echo here")).stdout).toBe("here\n");
});

test("a keeper whose launch service is killed holds its groups again with the next one", async () => {
  await using idle = setUpLocal();
  await (await idle.provider.create(small)).destroy();
  const holders = () =>
    basesOf(idle).flatMap((base) =>
      readFileSync(join(base, "keeper/cgroup.procs"), "utf8").split("\n").filter(Boolean).map(Number),
    );
  const [service] = holders();
  if (service !== undefined) process.kill(service, "SIGKILL");
  await vi.waitFor(() => expect(holders()).not.toContain(service));
  await other.removeAbandoned();
  await using sandbox = await idle.provider.create(small);
  expect((await run(sandbox, "echo here")).stdout).toBe("here\n");
  await vi.waitFor(() => expect(holders().length).toBe(basesOf(idle).length));
});

test("a sandbox whose keeper was killed keeps its groups", async () => {
  await using local = setUpLocal();
  await using sandbox = await local.provider.create(small);
  const { cgroups } = recordOf(local, sandbox);
  await killKeeper(local);
  await other.removeAbandoned();
  expect(cgroups.filter((group) => !existsSync(group))).toEqual([]);
  await sandbox.sleep();
  expect((await run(sandbox, "echo awake")).stdout).toBe("awake\n");
});

const counts = mechanisms.memory !== "none";
test(counts ? "why a sandbox ended is kept for its next keeper" : "a host without limits keeps no groups", async () => {
  await using local = setUpLocal();
  await using sandbox = await local.provider.create(small);
  const { cgroups, process: pid1 } = recordOf(local, sandbox);
  if (!counts) return expect(basesOf(local).length > 0).toBe(mechanisms.freeze !== "none");
  await run(sandbox, "exec dd if=/dev/zero of=/dev/null bs=600M count=1");
  await killKeeper(local);
  process.kill(pid1?.pid ?? 0, "SIGKILL");
  await vi.waitFor(() => expect(cgroups.some(hasProcesses)).toBe(false));
  await other.removeAbandoned();
  expect(await sandbox.info()).toMatchObject({ state: "stopped", reason: "out_of_memory" });
});

test("a keeper that ends leaves no group", async () => {
  const local = setUpLocal();
  await (await local.provider.create(small)).destroy();
  await local[Symbol.asyncDispose]();
  expect(basesOf(local)).toEqual([]);
});
