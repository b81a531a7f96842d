import { spawnSync } from "node:child_process";
import { closeSync, existsSync, openSync, statSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { complaintIn, launchArguments, parseLaunchStatus } from "./launch.ts";
import { createTestHost, type TestHost } from "./launch-fixture.ts";

let host: TestHost;
beforeAll(async () => {
  host = await createTestHost();
});
afterAll(() => host[Symbol.asyncDispose]());

const inside = async (script: string, change: Parameters<TestHost["spec"]>[1] = {}) =>
  host.run(host.spec(script, change));

describe("what a sandbox is", () => {
  test("an agent without capabilities, filtered, in a uid that is not root outside", async () => {
    const { output } = await inside(
      "id -u; cat /proc/self/uid_map /proc/self/gid_map; grep -E '^(Cap|Seccomp:|NoNewPrivs)' /proc/self/status",
    );
    expect(output).toMatch(/^1000\n\s+1000\s+0\s+1\n\s+1000\s+0\s+1\n/);
    for (const set of ["Inh", "Prm", "Eff", "Bnd", "Amb"]) expect(output).toContain(`Cap${set}:\t0000000000000000`);
    expect(output).toContain("Seccomp:\t2");
    expect(output).toContain("NoNewPrivs:\t1");
  });

  test("pid 1's files belong to the sandboxes' uid outside", async () => {
    const spec = host.spec("touch /workspace/made");
    await host.run(spec);
    expect(statSync(join(spec.box.upper, "workspace/made")).uid).toBe(host.identity?.uid ?? process.getuid?.());
  });

  const capabilities = "CapEff:\t00000000000004fb\nCapBnd:\t00000000000004fb\n";

  test("root inside has eight capabilities, and may change no owner to one that is not there", async () => {
    const script =
      "id -u; grep -E '^Cap(Eff|Bnd)' /proc/self/status; touch /tmp/x; chown 5:5 /tmp/x && stat -c %u /tmp/x";
    expect((await inside(script, { user: "root" })).output).toBe(`0\n${capabilities}0\n`);
  });

  if (process.getuid?.() === 0) {
    test("root inside has a second user beside it, who has no capabilities", async () => {
      const script =
        "cat /proc/self/uid_map /proc/self/gid_map; touch /tmp/x; chown 1000:1000 /tmp/x; chown 5 /tmp/x; stat -c %u:%g /tmp/x; setpriv --reuid 1000 --regid 1000 --clear-groups sh -c 'id -u; id -G; grep CapPrm /proc/self/status; touch /tmp/y'";
      const spec = host.spec(script, { user: "root" });
      expect((await host.run(spec)).output.replaceAll(/ +/g, " ")).toBe(
        `${" 0 0 1\n 1000 1000 1\n".repeat(2)}1000:1000\n1000\n1000\nCapPrm:\t0000000000000000\n`,
      );
      const second = (host.identity?.uid ?? 0) + 1;
      for (const name of ["x", "y"])
        expect(statSync(join(spec.box.upper, "tmp", name))).toMatchObject({ uid: second, gid: second });
    });
  } else {
    test("root inside is alone", async () => {
      const script = "cat /proc/self/uid_map; touch /tmp/x; chown 1000 /tmp/x && stat -c %u /tmp/x";
      expect((await inside(script, { user: "root" })).output).toMatch(/^\s+0\s+0\s+1\n0\n$/);
    });
  }

  test("the status pipe tells pid 1's number and that it is ready", async () => {
    const { status } = await inside("printf 'ready\\n' >&5");
    expect(parseLaunchStatus(status)).toEqual({ childPid: expect.any(Number), ready: true });
    expect(parseLaunchStatus(status.slice(0, 10))).toEqual({ childPid: null, ready: false });
    expect(complaintIn(status.replace("ready", "bwrap: no {} here"))).toBe("bwrap: no {} here");
  });
});

describe("what a sandbox cannot do", () => {
  test.each(["agent", "root"] as const)("inherit descriptors, as %s: it has three of its own", async (user) => {
    const secret = openSync("/etc/passwd", "r");
    const fds = Array.from({ length: 20 }, () => secret);
    const { output } = await host.run(host.spec("ls -l /proc/$$/fd; true", { user }), fds);
    closeSync(secret);
    expect(output).not.toContain("passwd");
    const links = [...output.matchAll(/(\d+) -> (.*)$/gm)].map(([, fd, target]) => [Number(fd), target] as const);
    const known = new Map(links.filter(([, target]) => target !== "/run/slipway-agent"));
    expect([...known.keys()].sort()).toEqual([0, 1, 2, 3, 4, 5]);
    expect(known.get(3)).toMatch(/^socket:/);
    expect(known.get(4)).toMatch(/\/execs$/);
  });

  test.each(["agent", "root"] as const)("write the kernel's settings as %s", async (user) => {
    const script =
      "for f in kernel/core_pattern kernel/modprobe fs/binfmt_misc/register vm/drop_caches; do echo x > /proc/sys/$f && echo WROTE $f; done; echo b > /proc/sysrq-trigger && echo WROTE; true";
    expect((await inside(script, { user })).output).not.toContain("WROTE");
  });

  test.each(["agent", "root"] as const)("make namespaces or mounts as %s", async (user) => {
    const script =
      "unshare -U true && echo MADE; unshare -n true && echo MADE; mount -t tmpfs none /mnt && echo MADE; umount -l /usr && echo MADE; chroot / true && echo MADE; true";
    expect((await inside(script, { user })).output).not.toContain("MADE");
  });

  test("see the host's files, or its session's keys", async () => {
    const script =
      "ls /root /home /var/lib /usr/local/bin /usr/etc; ls /etc/shadow /etc/ssh /sys/kernel; cat /proc/keys; ls -d /work /boot /oldroot";
    const { output } = await inside(script);
    expect(output).toMatch(/\/etc\/shadow.*No such file/);
    expect(output).toMatch(/\/boot.*No such file/);
    expect(output).toContain("/proc/keys: Permission denied");
    expect(output).toContain("/usr/local/bin:\n\n");
  });

  test("fill the host's memory through /dev, or write /usr", async () => {
    const { output } = await inside(
      "touch /dev/x; touch /usr/x; touch /usr/etc/x; df -P /dev/shm /run | awk 'NR > 1 {print $2}'; touch /usr/local/x /tmp/x /dev/shm/x && echo fine",
    );
    expect(output.match(/Read-only file system/g)).toHaveLength(3);
    expect(output).toContain("262144\n16384\nfine\n");
  });

  test("reach other processes, or the network", async () => {
    const { output } = await inside("ls -d /proc/[0-9]* | wc -l; tail -n +3 /proc/net/dev; hostname");
    expect(output).toMatch(/^[23]\n\s+lo:.*\nslipway\n$/);
  });
});

describe("the launcher", () => {
  test("finds a box again and keeps its files", async () => {
    const spec = host.spec("test -e /workspace/a && echo again; touch /workspace/a");
    expect((await host.run(spec)).output).toBe("");
    expect((await host.run(spec)).output).toBe("again\n");
  });

  test("closes the box to others", async () => {
    const spec = host.spec("true");
    await host.run(spec);
    expect(statSync(spec.box.root).mode & 0o777).toBe(0o700);
    expect(statSync(spec.box.agentSocket).mode & 0o777).toBe(0o600);
  });

  test("makes the working directory inside, also behind a link that leads out", async () => {
    const spec = host.spec("ls -d /etc/outside/deep", { workdir: "/link/outside/deep" });
    layerWithLink("links", "link", "/etc");
    const { output } = await host.run({ ...spec, lowers: ["links", ...spec.lowers] });
    expect(output).toBe("/etc/outside/deep\n");
    expect(existsSync("/etc/outside")).toBe(false);
  });

  test("refuses a mount point that is a link", async () => {
    const spec = host.spec("echo STARTED");
    layerWithLink("run-link", "run", "/tmp");
    const { exitCode, output } = await host.run({ ...spec, lowers: ["run-link", ...spec.lowers] });
    expect(exitCode).toBe(1);
    expect(output).toBe("slipway-launch: make /run in the sandbox: Too many levels of symbolic links\n");
  });

  test("says what failed in one line", async () => {
    const spec = host.spec("true", { lowers: ["missing"] });
    expect(await host.run(spec)).toMatchObject({
      exitCode: 1,
      output: "slipway-launch: mount the overlay of 1 layers: No such file or directory\n",
    });
    const many = host.spec("true", { lowers: Array.from({ length: 400 }, (_, index) => `layer-${index}`) });
    expect((await host.run(many)).output).toBe(
      "slipway-launch: 400 layers are too many for one overlay; flatten them\n",
    );
  });

  if (process.getuid?.() === 0) {
    test("refuses to become root", () => {
      const asRoot = launchArguments(host.spec("true", { identity: { uid: 0, gid: 0 } }));
      expect(spawnSync(host.launcher, asRoot, { encoding: "utf8" }).status).toBe(2);
    });

    test("needs no right of root but to become another user", () => {
      const args = launchArguments(host.spec("id -u", { user: "root" }));
      const rights = ["--bounding-set=-all,+setuid,+setgid", host.launcher, ...args];
      expect(spawnSync("setpriv", rights, { encoding: "utf8" })).toMatchObject({ status: 0, stderr: "0\n" });
    });

    test("refuses to start as root", () => {
      const args = launchArguments(host.spec("true", { identity: null }));
      expect(spawnSync(host.launcher, args, { encoding: "utf8" })).toMatchObject({
        status: 2,
        stderr: expect.stringContaining("needs --uid and --gid"),
      });
    });
  }

  test("takes its arguments from standard input when told to wait, but none that need rights", () => {
    const who = host.identity === null ? [] : ["--uid", String(host.identity.uid), "--gid", String(host.identity.gid)];
    const wait = (input: string) => spawnSync(host.launcher, ["run", "--wait", ...who], { input, encoding: "utf8" });
    expect(wait("")).toMatchObject({ status: 0, stderr: "" });
    expect(wait("--cgroup\0/sys\0")).toMatchObject({ status: 2, stderr: "slipway-launch: unknown option --cgroup\n" });
    expect(wait("--layers\0/\0").stderr).toMatch(/run needs/);
  });
});

function layerWithLink(id: string, name: string, target: string): void {
  symlinkSync(target, join(host.directory(`layers/${id}/fs`), name));
}
