import { lstatSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import type { Sandbox } from "../../../provider.ts";
import { run } from "../../../run.ts";
import { sandboxUid } from "../launch/launch.ts";
import { type Attacker, attack } from "./attacker-fixture.ts";

let attacker: Attacker;
beforeAll(() => {
  attacker = attack();
});
afterAll(() => attacker[Symbol.asyncDispose]());

const asSecond = "setpriv --reuid 1000 --regid 1000 --clear-groups";
const root = { user: "root" } as const;

// An ordinary user of the host can map no uid but its own.
describe.runIf(process.getuid?.() === 0)("uid 1000, beside root inside,", () => {
  /** Runs a script as uid 1000. */
  const second = (sandbox: Sandbox, script: string) =>
    run(sandbox, [...asSecond.split(" "), "sh", "-c", script], { signal: AbortSignal.timeout(120_000) });

  test("is what root becomes, and it does not come back", async () => {
    await using sandbox = await attacker.sandbox(root);
    const script =
      "import os\nos.setgroups([]); os.setgid(1000); os.setuid(1000); print(os.getresuid(), os.getgroups())\ntry: os.setuid(0)\nexcept PermissionError: print('stays')";
    expect((await run(sandbox, ["python3", "-c", script])).stdout).toBe("(1000, 1000, 1000) []\nstays\n");
    const { stdout } = await second(sandbox, "id -u; cat /proc/self/status; su -c id < /dev/null");
    expect(stdout).toMatch(/^1000\n/);
    for (const set of ["Prm", "Eff", "Amb"]) expect(stdout).toContain(`Cap${set}:\t0000000000000000`);
    expect(stdout).not.toContain("uid=0");
  });

  test("cannot touch root's files", async () => {
    await using sandbox = await attacker.sandbox(root);
    await run(
      sandbox,
      "cd /workspace && echo kept > secret && chmod 600 secret && echo kept > shown && mkdir -m 700 in",
    );
    const script =
      "cd /workspace; cat secret; echo x >> secret; echo x >> shown; rm shown; ls in; chmod 666 secret; chown 1000 secret; ln secret /tmp/mine; touch new; cat shown";
    expect((await second(sandbox, script)).stdout).toBe("kept\n");
    expect((await run(sandbox, "cd /workspace; cat secret shown; stat -c %u:%a secret; ls")).stdout).toBe(
      "kept\nkept\n0:600\nin\nsecret\nshown\n",
    );
  });

  test("cannot signal or trace root's processes, nor read their surroundings", async () => {
    await using sandbox = await attacker.sandbox(root);
    const exec = await sandbox.exec({ shell: "echo $$; exec sleep 1000", env: { SECRET: "of root" } });
    const [chunk] = await Array.fromAsync(first(exec.output()));
    const pid = Number(Buffer.from(chunk?.type === "stdout" ? chunk.data : []).toString());
    expect(pid).toBeGreaterThan(1);
    const script = `import ctypes, os
libc = ctypes.CDLL(None, use_errno=True)
for pid in (1, ${pid}):
    for act in (lambda: os.kill(pid, 9), lambda: os.kill(pid, 19),
                lambda: open(f"/proc/{pid}/environ").read(), lambda: open(f"/proc/{pid}/mem", "rb"),
                lambda: os.listdir(f"/proc/{pid}/fd"), lambda: os.listdir(f"/proc/{pid}/root"),
                lambda: os.sched_setaffinity(pid, [0]), lambda: os.setpriority(os.PRIO_PROCESS, pid, 19)):
        try: print("DID", act())
        except PermissionError: pass
    if libc.ptrace(16, pid, 0, 0) == 0: print("TRACED")
    if libc.ptrace(0x4206, pid, 0, 0) == 0: print("SEIZED")
os.kill(-1, 9)`;
    const { stdout, stderr, exitCode } = await run(sandbox, [...asSecond.split(" "), "python3", "-c", script]);
    expect({ stdout, stderr, exitCode }).toEqual({ stdout: "", stderr: "", exitCode: 0 });
    expect((await run(sandbox, `kill -0 ${pid} && echo alive`)).stdout).toBe("alive\n");
    await exec.kill({ graceMs: 0 });
  });

  test("makes no namespace, and neither does root", async () => {
    await using sandbox = await attacker.sandbox(root);
    const script =
      "unshare -U true && echo MADE; unshare -Ur true && echo MADE; cat /proc/sys/user/max_user_namespaces";
    for (const attempt of [second(sandbox, script), run(sandbox, script)]) expect((await attempt).stdout).toBe("0\n");
    const raise = "echo 9 > /proc/sys/user/max_user_namespaces && echo RAISED; true";
    expect((await run(sandbox, raise)).stdout).toBe("");
  });

  test.each(["processes", "threads"])("a bomb of %s leaves root, and pid 1, their processes", async (kind) => {
    await using sandbox = await attacker.sandbox({ ...root, processes: 64 });
    const bomb = await attacker.put(sandbox, "bomb");
    const exec = await sandbox.exec({ argv: [...asSecond.split(" "), bomb, kind] });
    await Array.fromAsync(first(exec.output()));
    const count = "ls -d /proc/[0-9]*/task/[0-9]* | wc -l";
    const { stdout, exitCode } = await run(sandbox, count, { signal: AbortSignal.timeout(60_000) });
    expect(exitCode).toBe(0);
    expect(Number(stdout)).toBeLessThan(64 + 16);
    await exec.kill({ graceMs: 0, signal: AbortSignal.timeout(60_000) });
    expect(await exec.wait()).toMatchObject({ reason: "killed" });
    expect((await run(sandbox, count)).stdout).toMatch(/^\d\n$/);
  });

  test("bombs of both users leave pid 1 its own", async () => {
    await using sandbox = await attacker.sandbox({ ...root, processes: 64 });
    const bomb = await attacker.put(sandbox, "bomb");
    const theirs = await sandbox.exec({ argv: [...asSecond.split(" "), bomb] });
    await Array.fromAsync(first(theirs.output()));
    const { exec } = await attacker.start(sandbox, "bomb");
    expect(await sandbox.files.stat("/tmp")).toMatchObject({ type: "directory" });
    for (const each of [theirs, exec]) {
      await each.kill({ graceMs: 0, signal: AbortSignal.timeout(60_000) });
      expect(await each.wait()).toMatchObject({ reason: "killed" });
    }
    expect((await run(sandbox, "echo fine")).stdout).toBe("fine\n");
  });

  test.each(["named", "unlinked", "mapped"])(
    "%s files of it end the sandbox as root's do",
    async (way) => {
      await using sandbox = await attacker.sandbox({ ...root, diskMb: 16 });
      await run(sandbox, "chmod 1777 /workspace");
      const hidden = await attacker.put(sandbox, "hidden");
      const fill =
        way === "named"
          ? "cd /workspace; for i in $(seq 2000); do dd if=/dev/zero of=$i bs=1M count=1; sleep 0.03; done"
          : `cd /workspace; exec ${hidden} ${way} 8 untraceable`;
      expect((await second(sandbox, fill)).exit).toMatchObject({ reason: "lost" });
      const isStopped = async () =>
        expect(await sandbox.info()).toMatchObject({ state: "stopped", reason: "out_of_disk" });
      await vi.waitFor(isStopped, { timeout: 20_000 });
    },
    150_000,
  );
});

describe.runIf(process.getuid?.() === 0)("files of both users", () => {
  const owners = "cd /workspace && stat -c '%n %u:%g %a' dir dir/file link root && cat dir/file";
  const expected = "dir 1000:1000 700\ndir/file 1000:1000 4755\nlink 1000:1000 777\nroot 0:0 600\ntext\n";

  test("survive a snapshot, running or stopped, a fork, and a restart, and go with the sandbox", async () => {
    await using sandbox = await attacker.sandbox(root);
    const make =
      "cd /workspace && mkdir -m 700 dir && echo text > dir/file && ln -s dir/file link && touch root && chmod 600 root && chown -hR 1000:1000 dir link && chmod 4755 dir/file";
    expect((await run(sandbox, make)).exitCode).toBe(0);
    const upper = join(attacker.stateDir, "boxes", sandbox.id, "upper");
    expect(lstatSync(join(upper, "workspace/dir/file"))).toMatchObject({ uid: sandboxUid + 1, gid: sandboxUid + 1 });
    const live = await sandbox.snapshot();
    const again = await sandbox.snapshot();
    await using fork = await sandbox.fork();
    await sandbox.stop();
    const stopped = await sandbox.snapshot();
    for (const snapshot of [live, again, stopped]) {
      await using copy = await attacker.sandbox({ ...root, snapshot: snapshot.id });
      expect((await run(copy, owners)).stdout).toBe(expected);
      expect((await run(copy, [...asSecond.split(" "), "sh", "-c", owners])).stdout).toBe(expected);
    }
    expect((await run(fork, owners)).stdout).toBe(expected);
    await sandbox.start();
    expect((await run(sandbox, owners)).stdout).toBe(expected);
    expect(await sandbox.destroy()).toMatchObject({ processesGone: true, filesGone: true });
    for (const { id } of [live, again, stopped]) await attacker.provider.snapshots.delete(id);
  });
});

async function* first<T>(items: AsyncIterable<T>): AsyncIterable<T> {
  for await (const item of items) {
    yield item;
    return;
  }
}
