import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { OwnedSandbox } from "../../../provider.ts";
import { run } from "../../../run.ts";
import { type Attacker, answers, attack, users } from "./attacker-fixture.ts";

let attacker: Attacker;
beforeAll(() => {
  attacker = attack();
});
afterAll(() => attacker[Symbol.asyncDispose]());

/** Refused, or not there at all. */
const refusals = ["EPERM", "EACCES", "ENOSYS", "EAFNOSUPPORT", "EPROTONOSUPPORT", "EROFS", "ENOENT"];

const closedPaths = [
  ...["/proc/sys/kernel/core_pattern", "/proc/sys/kernel/modprobe", "/proc/sys/kernel/hostname"],
  ...["/proc/sys/vm/overcommit_memory", "/proc/sys/fs/binfmt_misc/register", "/proc/sys/user/max_user_namespaces"],
  ...["/proc/sys/net/ipv4/ip_forward", "/proc/sysrq-trigger", "/proc/irq/default_smp_affinity", "/proc/mtrr"],
  ...["/proc/sys/kernel/pid_max", "/proc/sys/kernel/ns_last_pid", "/proc/pressure/memory"],
  ...["/proc/1/oom_score_adj", "/proc/1/comm", "/proc/1/timerslack_ns", "/proc/1/autogroup", "/proc/1/sched"],
  ...["/sys/kernel/uevent_helper", "/sys/fs/cgroup/cgroup.procs", "/sys/power/state"],
  ...["/run/slipway-agent", "/usr/bin/env", "/etc/../usr/lib/os-release", "/run/slipway/egress.sock"],
];
const unreadablePaths = [
  ...["/proc/kcore", "/proc/kmsg", "/proc/keys", "/proc/slabinfo", "/proc/vmallocinfo", "/proc/kpagecount"],
  ...["/dev/mem", "/dev/kmem", "/dev/port", "/dev/kmsg", "/dev/fuse", "/dev/kvm", "/dev/vsock", "/dev/net/tun"],
  ...["/dev/sda", "/dev/vda", "/dev/loop0", "/dev/loop-control", "/dev/mapper/control", "/dev/userfaultfd"],
  ...["/proc/1/mem", "/proc/1/environ", "/proc/1/maps", "/proc/1/auxv", "/proc/1/stack", "/proc/1/syscall"],
  ...[
    "/proc/1/fd/3",
    "/proc/1/fdinfo/3",
    "/proc/1/fd/4",
    "/proc/1/root/etc/passwd",
    "/proc/1/cwd/etc/passwd",
    "/proc/1/io",
  ],
  ...["/etc/shadow", "/root/.ssh/id_rsa", "/proc/1/pagemap", "/sys/kernel/debug", "/var/run/docker.sock"],
];

describe.each(users)("%s inside cannot", (user) => {
  let sandbox: OwnedSandbox;
  let calls: Map<string, string>;
  let paths: Map<string, string>;
  beforeAll(async () => {
    sandbox = await attacker.sandbox({ user });
    calls = answers((await attacker.run(sandbox, "calls")).stdout);
    paths = answers((await attacker.run(sandbox, "paths", [...closedPaths, ...unreadablePaths])).stdout);
  });

  test("have the kernel do anything a sandbox has no need of", () => {
    const granted = [...calls].filter(([, answer]) => !refusals.includes(answer));
    expect(granted.filter(([name]) => !name.includes("whiteout"))).toEqual([]);
    expect(calls.size).toBeGreaterThan(90);
  });

  test("make what the overlay takes for a deleted file", () => {
    expect(calls.get("mknod of an overlay whiteout")).toBe("EPERM");
    expect(calls.get("renaming to an overlay whiteout")).toMatch(/^(EINVAL|ENOENT)$/);
  });

  test.each(closedPaths)("write to %s", (path) => {
    expect([...refusals, "ENXIO", "ETXTBSY"]).toContain(paths.get(`write ${path}`));
  });

  test.each(unreadablePaths)("read %s", (path) => {
    expect(refusals).toContain(paths.get(`read ${path}`));
  });
});

describe.each(users)("%s inside", (user) => {
  let sandbox: OwnedSandbox;
  beforeAll(async () => {
    sandbox = await attacker.sandbox({ user });
  });
  const shell = async (text: string) => (await run(sandbox, text)).stdout.trim();

  test("sees its own processes only", async () => {
    const pids = (await shell("ls /proc | grep -E '^[0-9]+$' | wc -l")).split("\n");
    expect(Number(pids[0])).toBeLessThan(12);
    expect(await shell("cat /proc/1/comm")).toBe("slipway-agent");
  });

  test("inherits no descriptor but the three", async () => {
    const probe = "import os; print([fd for fd in range(1024) if os.path.exists('/proc/self/fd/%d' % fd)])";
    expect((await run(sandbox, ["python3", "-c", probe])).stdout.trim()).toBe("[0, 1, 2]");
  });

  test("finds nothing in /proc that can be written, and still reopens its own descriptors by it", async () => {
    // What lists keys is covered by /dev/null.
    expect(await shell("find /proc -xdev -type f -writable ! -path /proc/keys 2>/dev/null")).toBe("");
    expect(await shell("echo piped > /dev/stdout; exec 3>/tmp/kept; echo kept > /dev/fd/3; cat /tmp/kept")).toBe(
      "piped\nkept",
    );
  });

  test("has a /dev of six harmless devices, which it cannot add to", async () => {
    const devices = await shell("stat -c '%F %n' /dev/* | sed -n 's/^[a-z]* special file //p' | sort | tr '\\n' ' '");
    expect(devices).toBe("/dev/full /dev/null /dev/random /dev/tty /dev/urandom /dev/zero");
    expect((await run(sandbox, "ln -s /proc/1/fd /dev/evil")).exitCode).not.toBe(0);
  });

  test("has no /sys and no control groups", async () => {
    expect(await shell("ls /sys 2>/dev/null | wc -l; grep -c -E ' - (cgroup2?|sysfs) ' /proc/self/mountinfo")).toBe(
      "0\n0",
    );
  });

  test("gains nothing by a set-user-id program", async () => {
    const script = "cp /bin/cat /tmp/cat && chmod 6755 /tmp/cat && /tmp/cat /etc/shadow; su -c id; echo over";
    const { stdout, stderr } = await run(sandbox, script);
    expect(stdout.trim()).toBe("over");
    expect(stderr).not.toBe("");
    expect(await shell("grep -E '^(NoNewPrivs|Seccomp):' /proc/self/status | tr -s '\\t\\n' ' '")).toBe(
      "NoNewPrivs: 1 Seccomp: 2",
    );
    expect(
      await shell(
        'awk \'$5 == "/" || $5 == "/usr" || $5 == "/tmp" {print ($6 ~ /nosuid/ && $6 ~ /nodev/)}\' /proc/self/mountinfo | sort -u',
      ),
    ).toBe("1");
  });

  test("keeps no capability that reaches out of its user namespace", async () => {
    const effective = BigInt(`0x${await shell("awk '/^CapBnd/ {print $2}' /proc/self/status")}`);
    const dangerous = [1n << 21n, 1n << 19n, 1n << 12n, 1n << 13n, 1n << 16n, 1n << 27n, 1n << 18n, 1n << 24n];
    expect(dangerous.filter((bit) => (effective & bit) !== 0n)).toEqual([]);
    if (user === "agent") expect(effective).toBe(0n);
  });

  test("crashes without a word to the host's crash handler", async () => {
    const probe =
      "import resource as r\nfor pair in ((0, 0), (0, 1), (1, 1)):\n try: r.setrlimit(r.RLIMIT_CORE, pair)\n except Exception: pass\n try: r.prlimit(0, r.RLIMIT_CORE, pair)\n except Exception: pass\nprint(r.getrlimit(r.RLIMIT_CORE))";
    expect((await run(sandbox, ["python3", "-c", probe])).stdout.trim()).toBe("(1, 1)");
  });

  test("puts nothing into a terminal's input", async () => {
    const probe =
      "import fcntl, termios, sys\nfor call in (termios.TIOCSTI, 0x541C):\n try: fcntl.ioctl(0, call, b'x'); print('done')\n except OSError as e: print(e.errno)";
    const exec = await sandbox.exec({ argv: ["python3", "-c", probe], pty: { cols: 80, rows: 24 } });
    let said = "";
    for await (const chunk of exec.output()) if (chunk.type === "stdout") said += Buffer.from(chunk.data).toString();
    expect(said.split(/\s+/).filter(Boolean)).toEqual(["1", "1"]);
  });
});
