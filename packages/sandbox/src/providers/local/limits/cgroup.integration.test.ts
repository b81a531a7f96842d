import { mkdirSync, mkdtempSync, readFileSync, rmdirSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { createTestHost, type TestHost } from "../launch/launch-fixture.ts";
import { createLaunchpad } from "../launch/launchpad.ts";
import { type Cgroups, detectCgroups, parseHierarchies } from "./cgroup.ts";
import { openCgroup } from "./cgroup-control.ts";

const { mechanisms } = await detectCgroups();

describe("hierarchies", () => {
  test("v2 alone", () => {
    const mounts = "29 23 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate";
    expect(parseHierarchies("0::/user.slice/session-1.scope\n", mounts)).toEqual([
      { version: 2, controllers: [], mountPoint: "/sys/fs/cgroup", own: "/sys/fs/cgroup/user.slice/session-1.scope" },
    ]);
  });

  test("v1 and v2 side by side, v2 first", () => {
    const mounts = [
      "35 31 0:32 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory",
      "36 31 0:33 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct",
      "41 31 0:38 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw",
    ].join("\n");
    const own = "4:memory:/job/7\n2:cpu,cpuacct:/\n0::/\n";
    expect(parseHierarchies(own, mounts).map(({ version, own }) => [version, own])).toEqual([
      [2, "/sys/fs/cgroup/unified"],
      [1, "/sys/fs/cgroup/memory/job/7"],
      [1, "/sys/fs/cgroup/cpu,cpuacct"],
    ]);
  });

  test("a container's own group as the mount's root", () => {
    const mounts = "30 20 0:20 /docker/abc /sys/fs/cgroup/pids ro - cgroup cgroup rw,pids";
    expect(parseHierarchies("5:pids:/docker/abc\n", mounts)[0]?.own).toBe("/sys/fs/cgroup/pids");
    expect(parseHierarchies("5:pids:/docker/abc/sub\n", mounts)[0]?.own).toBe("/sys/fs/cgroup/pids/sub");
  });

  test("none at all", async () => {
    const proc = mkdtempSync(join(tmpdir(), "slipway-proc-"));
    mkdirSync(join(proc, "self"));
    writeFileSync(join(proc, "self/cgroup"), "");
    const places = await detectCgroups({ proc });
    expect(places.mechanisms).toEqual({ memory: "none", cpu: "none", pids: "none", freeze: "none" });
    const cgroups = await places.prepare();
    expect(cgroups.plan("x", { cpu: 1, memoryMb: 64, processes: 16 })).toEqual({ directories: [], sets: [] });
  });
});

describe("on this host", () => {
  let host: TestHost;
  let cgroups: Cgroups;
  beforeAll(async () => {
    host = await createTestHost();
    cgroups = await (await detectCgroups()).prepare(`slipway-test-${process.pid}`);
  });
  afterAll(async () => {
    await host[Symbol.asyncDispose]();
    for (const directory of cgroups.directories("any")) rmdirSync(dirname(directory));
  });
  const limits = { cpu: 0.5, memoryMb: 64, processes: 16 };
  /** As long as the socket is there, pid 1 sleeps. */
  const idle = "printf 'ready\\n' >&5; sleep 100";

  test("a sandbox starts from the launchpad, stands still, goes on and is ended", async () => {
    await using launchpad = createLaunchpad({
      service: host.service,
      identity: host.identity,
      cgroups,
      spares: host.directory("spares"),
    });
    const reservation = launchpad.reserve();
    const pid = await reservation.start(host.spec(idle), limits);
    const cgroup = await openCgroup(reservation.cgroups);
    if (reservation.cgroups.length === 0) return void process.kill(pid, "SIGKILL");
    expect(await cgroup.processes()).toContain(pid);
    if (cgroups.mechanisms.freeze !== "none") {
      await cgroup.freeze();
      await cgroup.thaw();
    }
    await cgroup.kill();
    expect(await cgroup.processes()).toEqual([]);
    await cgroup.remove();
    await cgroup.remove();
  });

  test("a start that fails says why and leaves no group", async () => {
    await using launchpad = createLaunchpad({
      service: host.service,
      identity: host.identity,
      cgroups,
      spares: host.directory("spares"),
    });
    const reservation = launchpad.reserve();
    const start = reservation.start(host.spec(idle, { lowers: ["missing"] }), limits);
    await expect(start).rejects.toMatchObject({
      code: "sandbox_start_failed",
      message: expect.stringContaining("mount the overlay"),
    });
    expect(await (await openCgroup(reservation.cgroups)).processes()).toEqual([]);
  });

  test("an aborted start leaves no process", async () => {
    await using launchpad = createLaunchpad({
      service: host.service,
      identity: host.identity,
      cgroups,
      spares: host.directory("spares"),
    });
    const start = launchpad.reserve().start(host.spec("sleep 100"), limits, { signal: AbortSignal.timeout(300) });
    await expect(start).rejects.toMatchObject({ code: "aborted" });
  });

  test("groups without processes that nobody knows are swept", async () => {
    const directories = cgroups.directories("stray");
    for (const directory of directories) mkdirSync(directory);
    await cgroups.sweep(new Set(directories));
    for (const directory of directories) expect(readFileSync(join(directory, "cgroup.procs"), "utf8")).toBe("");
    await cgroups.sweep(new Set());
    for (const directory of directories) expect(() => readFileSync(join(directory, "cgroup.procs"))).toThrow("ENOENT");
  });

  const limited = mechanisms.memory !== "none" && mechanisms.pids !== "none";
  const holds = "more memory than allowed kills the process, more processes fail";
  test(limited ? holds : "a host without controllers says so", async () => {
    if (!limited) return expect(cgroups.plan("x", limits).sets).toEqual([]);
    await using launchpad = createLaunchpad({
      service: host.service,
      identity: host.identity,
      cgroups,
      spares: host.directory("spares"),
    });
    const reservation = launchpad.reserve();
    const hog =
      "python3 -c 'x = bytearray(200 << 20)'; i=0; while [ $i -lt 200 ]; do sleep 100 & i=$((i + 1)); done; true";
    const spec = host.spec(`(${hog}); printf 'ready\\n' >&5; sleep 100`);
    await reservation.start(spec, limits);
    const cgroup = await openCgroup(reservation.cgroups);
    expect(await cgroup.oomKills()).toBe(1);
    expect((await cgroup.processes()).length).toBeLessThanOrEqual(limits.processes + 64);
    await cgroup.kill();
    await cgroup.remove();
  });
});
