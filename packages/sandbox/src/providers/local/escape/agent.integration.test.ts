import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { OwnedSandbox } from "../../../provider.ts";
import { run } from "../../../run.ts";
import { type Attacker, answers, attack, users } from "./attacker-fixture.ts";

let attacker: Attacker;
beforeAll(() => {
  attacker = attack();
});
afterAll(() => attacker[Symbol.asyncDispose]());

const handlers = "pgrep -x slipway-agent";

describe.each(users)("the agent, to %s inside,", (user) => {
  let sandbox: OwnedSandbox;
  beforeAll(async () => {
    sandbox = await attacker.sandbox({ user });
  });
  const alive = async () => expect((await run(sandbox, ["true"])).exitCode).toBe(0);

  test("shows no memory, no descriptor and no root, and cannot be traced", async () => {
    const { stdout } = await attacker.run(sandbox, "intruder");
    expect(stdout.split("\n").filter((line) => line.endsWith(": done"))).toEqual([]);
    // Pid 1, this exec's handler and the forwarder.
    expect(Number(answers(stdout).get("agents"))).toBeGreaterThanOrEqual(3);
    expect(answers(stdout).get("over")).toBe("over");
    await alive();
  });

  test("is made neither deaf nor slow", async () => {
    const attempts = [
      ...["prlimit --pid 1 --nofile=0:0", "prlimit --pid 1 --nproc=0:0", "prlimit --pid 1 --cpu=1:1"],
      ...["prlimit --pid $PPID --nofile=0:0", "renice -n 19 -p 1", "renice -n 19 -g 1", "renice -n 19 -u $(id -u)"],
      ...["chrt --idle --pid 0 1", "chrt --batch --pid 0 1", "taskset -p 1 1", "ionice -c 3 -p 1", "ionice -c 3 -P 1"],
      ...["echo 1000 > /proc/1/oom_score_adj", "echo 19 > /proc/1/autogroup", "echo 301 > /proc/sys/kernel/pid_max"],
    ];
    const script = attempts.map((attempt) => `(${attempt}) >/dev/null 2>&1 && echo '${attempt}'`).join("\n");
    expect((await run(sandbox, `${script}\ntrue`)).stdout).toBe("");
    await alive();
  });

  test("takes nothing from LD_PRELOAD or another loader's variables", async () => {
    const { exitCode } = await run(sandbox, "true", { env: { LD_PRELOAD: "/tmp/evil.so", GCONV_PATH: "/tmp" } });
    expect(exitCode).toBe(0);
    expect((await run(sandbox, "tr '\\0' '\\n' < /proc/$PPID/environ")).stdout).toBe("");
  });

  test("has a socket that nothing inside can reach", async () => {
    const socket = join(attacker.stateDir, "boxes", sandbox.id, "agent.sock");
    expect(existsSync(socket)).toBe(true);
    const probe = `import socket, glob
for path in [${JSON.stringify(socket)}, "/agent.sock", "agent.sock", "/run/slipway/agent.sock"] + glob.glob("/proc/*/fd/3"):
    s = socket.socket(socket.AF_UNIX)
    try: s.connect(path); print("reached", path)
    except OSError: pass`;
    expect((await run(sandbox, ["python3", "-c", probe])).stdout).toBe("");
    // Listening sockets show in /proc/net/unix by the path they were bound with: a name that leads nowhere.
    expect((await run(sandbox, "awk 'NR > 1 && $8 {print $8}' /proc/net/unix | grep -v -x agent.sock")).stdout).toBe(
      "",
    );
  });

  test("ends an exec as lost when its handler is killed, and kills what the exec had started", async () => {
    const exec = await sandbox.exec({ shell: "sleep 300 & kill -9 $PPID; exit 0", timeoutMs: 20_000 });
    expect(await exec.wait()).toMatchObject({ reason: "lost", exitCode: null });
    await alive();
    const { stdout } = await run(
      sandbox,
      "for i in $(seq 1000); do pgrep -x sleep >/dev/null || break; sleep 0.05; done; pgrep -x sleep | wc -l",
    );
    expect(stdout.trim()).toBe("0");
  });

  test("ends an exec as lost when everything but pid 1 is killed", async () => {
    const exec = await sandbox.exec({ shell: "kill -9 -1; exit 0", timeoutMs: 20_000 });
    expect(["lost", "signaled"]).toContain((await exec.wait()).reason);
    await alive();
  });

  test("is not stopped: a handler that is stopped goes on and keeps its timeout", async () => {
    const exec = await sandbox.exec({ shell: "while :; do kill -STOP $PPID 1; done", timeoutMs: 300 });
    expect(await exec.wait()).toMatchObject({ reason: "timeout", exitCode: null });
    await alive();
  });

  test("keeps logs that nothing inside can open or change", async () => {
    const script = `${handlers} | while read p; do for fd in 3 4 5 6 7 8 9 10; do printf x > /proc/$p/fd/$fd; cat /proc/$p/fd/$fd; done; done 2>/dev/null; echo said`;
    const exec = await sandbox.exec({ shell: script });
    await exec.wait();
    const log = readFileSync(join(attacker.stateDir, "boxes", sandbox.id, "execs", exec.id));
    expect(log.subarray(-38, -33).toString("latin1")).toBe("x!\0\0\0");
    const [attached] = await Array.fromAsync((await sandbox.attach(exec.id)).output());
    expect(attached).toMatchObject({ type: "stdout", data: Buffer.from("said\n") });
  });

  test("takes output that looks like an exit for output", async () => {
    const forged =
      "x!\\0\\0\\0\\0\\0\\0\\0\\0\\0\\0\\0\\0\\0\\0\\0\\0\\0\\0\\0\\0\\0\\0\\0\\0\\0\\0\\0\\0\\0\\0\\0\\0\\0\\0\\0\\0";
    const { exit, stdout } = await run(sandbox, `printf '${forged}'; printf '${forged}'; exit 7`);
    expect(exit).toMatchObject({ reason: "exited", exitCode: 7, stdoutBytes: 76 });
    expect(stdout.length).toBe(76);
    const info = (await sandbox.execs()).at(-1);
    expect(info?.exit).toMatchObject({ exitCode: 7 });
  });

  test("passes escape sequences on as data", async () => {
    const sequence = "\u001b]0;title\u0007\u001b[2J\u001b]52;c;ZXZpbA==\u0007\u009b31m";
    const { stdout } = await run(sandbox, ["printf", "%s", sequence]);
    expect(stdout).toBe(sequence);
  });

  test("starts a command with the longest arguments and refuses longer ones", async () => {
    const long = "a".repeat(128 * 1024 - 1);
    expect((await run(sandbox, ["true", ...Array<string>(8).fill(long)])).exitCode).toBe(0);
    await expect(run(sandbox, ["true", ...Array<string>(15).fill(long)], { env: { A: long } })).rejects.toMatchObject({
      code: "too_large",
    });
    await alive();
  });
});
