import { statSync } from "node:fs";
import { constants } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import { run } from "../../../run.ts";
import { detectCgroups } from "../limits/cgroup.ts";
import { type Attacker, answers, attack, eventOf, small, users } from "./attacker-fixture.ts";

let attacker: Attacker;
beforeAll(() => {
  attacker = attack();
});
afterAll(() => attacker[Symbol.asyncDispose]());

const { mechanisms } = await detectCgroups();

describe.each(users)("as %s inside,", (user) => {
  test.each(["processes", "threads"])("a bomb of %s stays within its sandbox, and is ended by kill", async (kind) => {
    await using sandbox = await attacker.sandbox({ user, processes: 64 });
    await using neighbour = await attacker.sandbox();
    const { exec } = await attacker.start(sandbox, "bomb", [kind]);
    expect((await run(neighbour, ["true"])).exitCode).toBe(0);
    expect(await sandbox.files.stat("/tmp")).toMatchObject({ type: "directory" });
    await expect(
      run(sandbox, ["true"], { signal: AbortSignal.timeout(60_000) }).then(
        ({ exit }) => exit.reason,
        ({ code }) => code,
      ),
    ).resolves.toMatch(/^(exited|process_limit)$/);
    await exec.kill({ graceMs: 0, signal: AbortSignal.timeout(60_000) });
    expect(await exec.wait()).toMatchObject({ reason: "killed" });
    expect((await run(sandbox, ["true"])).exitCode).toBe(0);
  });

  test("a bomb that goes off goes with its sandbox", async () => {
    const sandbox = await attacker.sandbox({ user, processes: 64 });
    await attacker.start(sandbox, "bomb", ["processes"]);
    expect(await sandbox.destroy()).toMatchObject({ processesGone: true, filesGone: true });
  });

  test("memory is held to the limit: of the whole sandbox by control groups, of each process without", async () => {
    await using sandbox = await attacker.sandbox({ user, memoryMb: 64 });
    const { exit, stdout } = await attacker.run(sandbox, "memory", ["512"]);
    if (mechanisms.memory === "none") {
      expect(exit).toMatchObject({ reason: "exited", exitCode: 42 });
      expect(Number(stdout)).toBeLessThanOrEqual(64);
    } else {
      expect(exit.reason).toBe("out_of_memory");
      expect(await eventOf(attacker.provider, sandbox, "sandbox.out_of_memory")).toMatchObject({ sandbox: sandbox.id });
    }
    expect((await run(sandbox, ["true"])).exitCode).toBe(0);
  });

  test("shared memory is held to its own limit", async () => {
    await using sandbox = await attacker.sandbox({ user });
    await run(sandbox, "dd if=/dev/zero of=/dev/shm/fill bs=1M count=300; dd if=/dev/zero of=/run/fill bs=1M count=32");
    await using other = await attacker.sandbox();
    expect((await run(other, "df --output=size -m /dev/shm /run | tail -n +2 | tr -d ' '")).stdout.trim()).toBe(
      "256\n16",
    );
  });

  test("no limit can be raised from inside", async () => {
    await using sandbox = await attacker.sandbox({ user });
    const tried = answers((await attacker.run(sandbox, "limits")).stdout);
    expect([...tried].filter(([, answer]) => !["EPERM", "EROFS"].includes(answer))).toEqual([]);
  });
});

describe("disk:", () => {
  const stopped = (reason: string) => (event: { to: string; reason: string }) =>
    event.to === "stopped" && event.reason === reason;

  test("one file is cut off at the limit", async () => {
    await using sandbox = await attacker.sandbox({ diskMb: 16 });
    // Most of the file is a hole: a disk that is full ends the sandbox.
    await run(sandbox, "dd if=/dev/zero of=/workspace/large bs=1M seek=15 count=2");
    expect((await sandbox.files.stat("/workspace/large")).size).toBe(16 * 1024 * 1024);
  });

  test("many files end the sandbox with a typed reason", async () => {
    await using sandbox = await attacker.sandbox({ diskMb: 16 });
    const fill = "for i in $(seq 2000); do dd if=/dev/zero of=/workspace/$i bs=1M count=1; sleep 0.03; done";
    expect((await run(sandbox, fill)).exit).toMatchObject({ reason: "lost", exitCode: null });
    await eventOf(attacker.provider, sandbox, "sandbox.state_changed", stopped("out_of_disk"));
    await expect(run(sandbox, ["true"])).rejects.toMatchObject({ code: "sandbox_ended" });
  });

  test("files without content count, too: a disk runs out of them as it does of bytes", async () => {
    await using sandbox = await attacker.sandbox({ diskMb: 32 });
    const fill = "import os\nfor i in range(30000): os.close(os.open('/workspace/%0250d' % i, os.O_CREAT))";
    await run(sandbox, ["python3", "-c", fill]).catch(() => undefined);
    await eventOf(attacker.provider, sandbox, "sandbox.state_changed", stopped("out_of_disk"));
  });
});

describe("disk that no directory shows:", () => {
  // Where a mapping leads, and what is open in a process that cannot be traced, is only root's to see.
  const isRoot = process.getuid?.() === 0;
  const ways = ["unlinked", "nameless", "thread", ...(isRoot ? ["mapped", "headless"] : [])];
  test.each(ways)(
    "%s files end the sandbox as others do",
    async (way) => {
      await using sandbox = await attacker.sandbox({ diskMb: 16 });
      const { exec } = await attacker.start(sandbox, "hidden", [way, "8", ...(isRoot ? ["untraceable"] : [])]);
      // What others delete meanwhile hides the growth; then the look that comes once a minute finds it.
      expect(await exec.wait({ signal: AbortSignal.timeout(120_000) })).toMatchObject({ reason: "lost" });
      const isStopped = async () =>
        expect(await sandbox.info()).toMatchObject({ state: "stopped", reason: "out_of_disk" });
      await vi.waitFor(isStopped, { timeout: 20_000 });
    },
    150_000,
  );

  test("no room is taken that is not written", async () => {
    await using sandbox = await attacker.sandbox({ diskMb: 16 });
    const take = `
import ctypes, fcntl, os, struct
file = os.open("/workspace/room", os.O_CREAT | os.O_RDWR)
call = ctypes.CDLL(None, use_errno=True).fallocate
call.argtypes = [ctypes.c_int, ctypes.c_int, ctypes.c_long, ctypes.c_long]
for mode in [0, 1, 0x10, 0x11]: print(call(file, mode, 0, 8 << 20) and ctypes.get_errno())
for number in [0x40305828, 0x4030582a, 0x40305839]:
    try: print(fcntl.ioctl(file, number, struct.pack("hhqqiiqqqq", 0, 0, 0, 8 << 20, 0, 0, 0, 0, 0, 0)))
    except OSError as error: print(error.errno)
print(os.fstat(file).st_blocks, call(file, 3, 0, 4096))`;
    const { stdout } = await run(sandbox, ["python3", "-c", take]);
    const [notSupported, notPermitted] = [constants.errno.EOPNOTSUPP, constants.errno.EPERM].map(String);
    expect(stdout.split("\n")).toEqual([
      ...[...Array(4).fill(notSupported), ...Array(3).fill(notPermitted)],
      ...["0 0", ""],
    ]);
  });
});

test("a flood of output is kept to 64 MiB, and says that it was cut", async () => {
  await using sandbox = await attacker.sandbox();
  const exec = await sandbox.exec({ shell: "head -c 80000000 /dev/zero; exit 3" });
  expect(await exec.wait()).toMatchObject({ reason: "exited", exitCode: 3, stdoutBytes: 80_000_000 });
  const log = join(attacker.stateDir, "boxes", sandbox.id, "execs", exec.id);
  expect(statSync(log).size).toBeLessThan(65 * 1024 * 1024);
  let kept = 0;
  let cut = false;
  for await (const chunk of (await sandbox.attach(exec.id)).output()) {
    if (chunk.type === "output_truncated") cut = true;
    else kept += chunk.data.length;
  }
  expect(cut).toBe(true);
  expect(kept).toBeLessThan(64 * 1024 * 1024 + 1);
});

test("a reader that stops reading holds up its own command only", async () => {
  await using sandbox = await attacker.sandbox({ ...small });
  const flood = await sandbox.exec({ shell: "cat /dev/zero" });
  const reader = flood.output()[Symbol.asyncIterator]();
  await reader.next();
  expect((await run(sandbox, "echo said")).stdout).toBe("said\n");
  await flood.kill({ graceMs: 0, signal: AbortSignal.timeout(60_000) });
  await reader.return?.();
  expect(await flood.wait({ signal: AbortSignal.timeout(60_000) })).toMatchObject({ reason: "killed" });
});
