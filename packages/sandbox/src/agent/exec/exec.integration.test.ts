import { createHash } from "node:crypto";
import { type ExecChunk, type ExecExit, hasCode } from "@slipway/contract";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Exec } from "../../provider.ts";
import { type AgentBox, execStart, startAgentBox } from "../agent-fixture.ts";
import { type ExecStart, startExec } from "./exec.ts";

let box: AgentBox;
beforeAll(async () => {
  box = await startAgentBox({ agentArguments: ["--file-bytes", "1000000"] });
});
afterAll(() => box[Symbol.asyncDispose]());

const run = (argv: readonly string[], change?: Partial<ExecStart>) => startExec(box.host, execStart(argv, change));
const sh = (script: string, change?: Partial<ExecStart>) => run(["sh", "-c", script], change);

async function all(exec: Exec): Promise<{ stdout: string; stderr: string; exit: ExecExit }> {
  const parts: Record<"stdout" | "stderr", Uint8Array[]> = { stdout: [], stderr: [] };
  for await (const chunk of exec.output()) if (chunk.type !== "output_truncated") parts[chunk.type].push(chunk.data);
  const text = (name: "stdout" | "stderr") => Buffer.concat(parts[name]).toString("latin1");
  return { stdout: text("stdout"), stderr: text("stderr"), exit: await exec.wait() };
}

async function until(output: AsyncIterator<ExecChunk>, text: string): Promise<string> {
  for (let seen = ""; ; ) {
    const { value, done } = await output.next();
    if (done) throw new Error(`ended before ${text}: ${seen}`);
    if (value.type !== "output_truncated") seen += Buffer.from(value.data).toString("latin1");
    if (seen.includes(text)) return seen;
  }
}

describe("a command", () => {
  it("gives its streams, bytes as they are, and its exit code", async () => {
    const { stdout, stderr, exit } = await all(await sh("printf 'a\\377\\000b'; echo no >&2; exit 7"));
    expect(stdout).toBe("a\xff\0b");
    expect(stderr).toBe("no\n");
    expect(exit).toMatchObject({ reason: "exited", exitCode: 7, signal: null, stdoutBytes: 4, stderrBytes: 3 });
  });

  it("sees its arguments, its environment and nothing else", async () => {
    const long = "ü".repeat(32 * 1024);
    const { stdout } = await all(
      await run(
        [
          "/usr/bin/python3",
          "-c",
          "import sys,os;print(len(sys.argv[1]),sys.argv[2:],sorted(os.environ))",
          long,
          "",
          "a b",
        ],
        { env: { ONE: "1", PATH: "/usr/bin" } },
      ),
    );
    expect(stdout).toBe(`${32 * 1024} ['', 'a b'] ['LC_CTYPE', 'ONE', 'PATH']\n`);
  });

  it("has three descriptors, its own session, default signals and no core file", async () => {
    const { stdout } = await all(
      await sh(
        "ls /proc/self/fd | tr '\\n' ' '; grep -E 'SigBlk|SigIgn' /proc/self/status | tr -s '\\t\\n' ' '; ulimit -c; [ $(ps -o sid= -p $$) = $$ ] && echo leads",
      ),
    );
    expect(stdout).toBe("0 1 2 3 SigBlk: 0000000000000000 SigIgn: 0000000000000000 0\nleads\n");
  });

  it.each([
    [["no-such-program"], {}, "exec_not_started"],
    [["/etc"], {}, "exec_not_started"],
    [["true"], { cwd: "/nowhere" }, "exec_not_started"],
  ] as const)("that cannot be started says so: %j", async (argv, change, code) => {
    await expect(run(argv, change)).rejects.toSatisfy((error) => hasCode(error, code));
  });

  it("leaves no log when it did not start, so that its id can be used again", async () => {
    const start = execStart(["no-such-program"]);
    await expect(startExec(box.host, start)).rejects.toThrow();
    expect((await all(await startExec(box.host, { ...start, argv: ["echo", "now"] }))).stdout).toBe("now\n");
  });

  it("is attached to when its id runs already", async () => {
    const start = execStart(["echo", "once"]);
    const first = await all(await startExec(box.host, start));
    expect(await all(await startExec(box.host, start))).toEqual(first);
  });

  it("that is quiet for long ends as it should", async () => {
    expect((await all(await sh("sleep 1.2; echo woke"))).stdout).toBe("woke\n");
  });

  it("cannot write a file above the limit", async () => {
    expect((await all(await sh("head -c 2000000 /dev/zero > big"))).exit.exitCode).not.toBe(0);
  });

  it("refuses arguments above two MiB", async () => {
    const argv = ["true", ...Array.from({ length: 20 }, () => "x".repeat(120_000))];
    await expect(run(argv)).rejects.toSatisfy((error) => hasCode(error, "too_large"));
  });

  it("that was aborted before it started does not run", async () => {
    await expect(startExec(box.host, execStart(["true"]), AbortSignal.abort())).rejects.toSatisfy((error) =>
      hasCode(error, "aborted"),
    );
  });
});

describe("standard input", () => {
  it("reaches the command, in order, and ends", async () => {
    const exec = await run(["sha256sum"], { stdin: "open" });
    const data = Buffer.alloc(5_000_000, "0123456789abcdef");
    const sent = exec.write(data).then(() => exec.end());
    const { stdout } = await all(exec);
    await sent;
    expect(stdout).toContain(createHash("sha256").update(data).digest("hex"));
  });

  it("that nobody reads holds back its writer but no signal", async () => {
    const exec = await sh("trap 'echo got; exit 0' USR1; echo up; while :; do sleep 0.05; done", { stdin: "open" });
    const output = exec.output()[Symbol.asyncIterator]();
    await until(output, "up");
    let taken = false;
    const write = exec.write(Buffer.alloc(50_000_000)).then(
      () => {
        taken = true;
      },
      () => {},
    );
    await exec.signal("SIGUSR1");
    await until(output, "got");
    expect(taken).toBe(false);
    await exec.wait();
    await write;
  });

  it("of a command without one is at its end, and takes nothing", async () => {
    const exec = await run(["wc", "-c"]);
    await expect(exec.write("x")).rejects.toThrow();
    expect((await all(exec)).stdout).toBe("0\n");
  });

  it("of an ended command is refused", async () => {
    const exec = await run(["true"], { stdin: "open" });
    await exec.wait();
    await expect(exec.write("x")).rejects.toSatisfy((error) => hasCode(error, "exec_ended"));
  });
});

describe("an end from outside", () => {
  it("by a signal names it", async () => {
    const exec = await run(["sleep", "100"]);
    await exec.signal("SIGINT");
    expect(await exec.wait()).toMatchObject({ reason: "signaled", signal: "SIGINT", exitCode: null });
  });

  it("by a signal to the tree reaches the children", async () => {
    const exec = await sh("sleep 100 & wait; echo after");
    await exec.signal("SIGTERM", { tree: true });
    expect(await exec.wait()).toMatchObject({ reason: "signaled", signal: "SIGTERM" });
  });

  it("by timeout asks first and then kills", async () => {
    const timeoutMs = 10_000;
    const polite = await sh("trap 'echo bye; exit 0' TERM; echo up; while :; do sleep 0.05; done", { timeoutMs });
    const stubborn = await sh("trap '' TERM; while :; do sleep 0.05; done", { timeoutMs });
    expect(await all(polite)).toMatchObject({ stdout: "up\nbye\n", exit: { reason: "timeout", exitCode: null } });
    const exit = await stubborn.wait();
    expect(exit).toMatchObject({ reason: "timeout", signal: "SIGKILL" });
    expect(exit.durationMs).toBeGreaterThan(timeoutMs + 1900);
  });

  it("by kill takes daemons that left the session twice", async () => {
    const exec = await sh("setsid sh -c 'setsid sh -c \"echo started; exec sleep 4242\" &' & sleep 100");
    await until(exec.output()[Symbol.asyncIterator](), "started");
    await exec.kill({ graceMs: 0 });
    expect(await exec.wait()).toMatchObject({ reason: "killed", signal: "SIGKILL" });
    expect((await all(await sh("pgrep -f 'sleep 424[2]' || echo none"))).stdout).toBe("none\n");
  });

  it("by kill reaches daemons of a command that has ended", async () => {
    const exec = await sh("setsid sleep 4343 >/dev/null 2>&1 & echo out");
    expect((await all(exec)).exit.reason).toBe("exited");
    await exec.kill();
    expect((await all(await sh("pgrep -f 'sleep 434[3]' || echo none"))).stdout).toBe("none\n");
    await exec.kill();
  });

  it("with a daemon that holds the output does not wait for the daemon", async () => {
    const exec = await sh("sleep 4444 & echo out");
    expect((await all(exec)).stdout).toBe("out\n");
    await exec.kill({ graceMs: 0 });
  });
});

describe("a terminal", () => {
  it("is one, has its size, and takes a new one", async () => {
    // Bash that waits for a child may take an interrupt for the child's own: what is interrupted waits for none.
    const script = `trap 'stty size; exec sh -c "echo waits; exec sleep 100"' WINCH; stty size; tty; while :; do sleep 0.05; done`;
    const exec = await run(["bash", "-c", script], { pty: { cols: 91, rows: 17 }, stdin: "open" });
    const output = exec.output()[Symbol.asyncIterator]();
    expect(await until(output, "/dev/pts/")).toContain("17 91");
    await exec.resize({ cols: 132, rows: 50 });
    expect(await until(output, "waits")).toContain("50 132");
    await exec.write("\x03");
    expect(await exec.wait()).toMatchObject({ reason: "signaled", signal: "SIGINT" });
  });

  it("ends its input on end()", async () => {
    const exec = await run(["sh", "-c", "cat; echo done"], { pty: { cols: 80, rows: 24 }, stdin: "open" });
    await exec.write("typed\n");
    await exec.end();
    expect((await all(exec)).stdout).toContain("done");
  });

  it("that is none cannot be resized", async () => {
    const exec = await run(["sleep", "10"]);
    await expect(exec.resize({ cols: 1, rows: 1 })).rejects.toSatisfy((error) => hasCode(error, "invalid_request"));
    await exec.kill({ graceMs: 0 });
  });
});

describe("output", () => {
  it("of 100 MB arrives whole", async () => {
    const exec = await sh("head -c 100000000 /dev/zero | tr '\\0' x");
    let bytes = 0;
    for await (const chunk of exec.output()) if (chunk.type !== "output_truncated") bytes += chunk.data.length;
    expect(bytes).toBe(100_000_000);
    expect(await exec.wait()).toMatchObject({ stdoutBytes: 100_000_000, exitCode: 0 });
  });

  it("faster than its reader waits inside the sandbox", async () => {
    const exec = await sh("head -c 300000000 /dev/zero; echo end >&2");
    const output = exec.output()[Symbol.asyncIterator]();
    await output.next();
    const before = process.memoryUsage().arrayBuffers;
    await (await sh("sleep 0.5")).wait();
    expect(process.memoryUsage().arrayBuffers - before).toBeLessThan(16 * 1024 * 1024);
    await output.return?.();
    expect(await exec.wait()).toMatchObject({ stdoutBytes: 300_000_000 });
  });

  it("is let go of with the handle, and the command goes on", async () => {
    const start = execStart(["sh", "-c", "sleep 0.3; echo later"]);
    const exec = await startExec(box.host, start);
    await exec[Symbol.asyncDispose]();
    await expect(exec.wait()).rejects.toSatisfy((error) => hasCode(error, "aborted"));
    expect((await all(await startExec(box.host, start))).stdout).toBe("later\n");
  });

  it("waits no longer than its signal", async () => {
    const exec = await run(["sleep", "10"]);
    const controller = new AbortController();
    const waiting = exec.wait({ signal: controller.signal });
    controller.abort();
    await expect(waiting).rejects.toSatisfy((error) => hasCode(error, "aborted"));
    await exec.kill({ graceMs: 0 });
  });
});
