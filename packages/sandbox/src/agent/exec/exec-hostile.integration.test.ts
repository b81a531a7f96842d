import { readdirSync, readFileSync } from "node:fs";
import { connect } from "node:net";
import { setTimeout as delay } from "node:timers/promises";
import { hasCode } from "@slipway/contract";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { type AgentBox, execStart, startAgentBox } from "../agent-fixture.ts";
import { openCall } from "../connection.ts";
import { createFiles } from "../files/files.ts";
import { attachExec, type ExecStart, startExec } from "./exec.ts";

let box: AgentBox;
beforeEach(async () => {
  box = await startAgentBox();
});
afterEach(() => box[Symbol.asyncDispose]());

const sh = (script: string, change?: Partial<ExecStart>) =>
  startExec(box.host, execStart(["bash", "-c", script], change));

async function textOf(script: string): Promise<string> {
  const exec = await sh(script);
  let text = "";
  for await (const chunk of exec.output())
    if (chunk.type !== "output_truncated") text += Buffer.from(chunk.data).toString();
  return text;
}

async function status(): Promise<{ operations: number; sinceMs: number }> {
  using call = await openCall(box.dial, "Q", {});
  const frame = await call.next();
  if (frame === null) throw new Error("no status");
  return { operations: frame.payload.readUInt32LE(0), sinceMs: Number(frame.payload.readBigUInt64LE(4)) };
}

describe("hostile code", () => {
  it("that kills its handler makes its exec lost, and dies with it", async () => {
    const script = "setsid sleep 5151 & echo out; read line; kill -9 $PPID; sleep 100";
    const start = execStart(["bash", "-c", script], { stdin: "open" });
    const exec = await startExec(box.host, start);
    await exec.output()[Symbol.asyncIterator]().next();
    await exec.write("\n");
    expect(await exec.wait()).toMatchObject({ reason: "lost", stdoutBytes: 4 });
    expect(await (await attachExec(box.host, start.id)).wait()).toMatchObject({ reason: "lost" });
    expect(
      await textOf(
        "for i in $(seq 1000); do pgrep -f 'sleep 515[1]' >/dev/null || { echo gone; break; }; sleep 0.05; done",
      ),
    ).toBe("gone\n");
  });

  it("that kills its handler in the middle of its output leaves a log that can be read to its end", async () => {
    for (let round = 0; round < 5; round++) {
      // More than a pipe holds: the handler has taken some of it by the time it is killed.
      const start = execStart(["bash", "-c", "head -c 300000 /dev/zero; yes & kill -9 $PPID"]);
      const live = await startExec(box.host, start);
      expect((await live.wait()).reason).toBe("lost");
      const exec = await attachExec(box.host, start.id);
      let bytes = 0;
      for await (const chunk of exec.output()) if (chunk.type !== "output_truncated") bytes += chunk.data.length;
      expect(await exec.wait()).toMatchObject({ reason: "lost" });
      expect(bytes).toBeGreaterThan(0);
    }
  });

  it("that kills the handler of an ended command ends the daemons with it", async () => {
    const exec = await sh("setsid sleep 6161 >/dev/null 2>&1 & echo $PPID");
    expect((await exec.wait()).reason).toBe("exited");
    await textOf("for p in $(ps --ppid 1 -o pid=); do [ $p != $PPID ] && kill -9 $p; done");
    expect(
      await textOf(
        "for i in $(seq 1000); do pgrep -f 'sleep 616[1]' >/dev/null || { echo gone; break; }; sleep 0.05; done",
      ),
    ).toBe("gone\n");
    expect((await exec.wait()).reason).toBe("exited");
  });

  it("that takes its command's pid once more, after the command, changes nothing of how that ended", async () => {
    // Few pids, so that they come round soon; none below 300 does.
    const few = "open('/proc/sys/kernel/pid_max', 'w').write('400')";
    await textOf(`python3 -c "${few}"; for i in $(seq 320); do (:); done`);
    const walk = `import os
me = os.getpid()
if os.fork(): os._exit(7)
os.setsid()
while os.getppid() == me: pass
for step in range(2000):
    if os.getpid() == me: os._exit(0)
    os.write(1, b'.')
    if os.fork(): os._exit(1)`;
    const exec = await startExec(box.host, execStart(["python3", "-c", walk]));
    expect(await exec.wait()).toMatchObject({ reason: "exited", exitCode: 7 });
  });

  it("that stops its handler does not escape its timeout", async () => {
    const exec = await sh("kill -STOP $PPID; sleep 100", { timeoutMs: 300 });
    expect(await exec.wait()).toMatchObject({ reason: "timeout" });
  });

  it("can neither signal, trace nor look into pid 1 and the handlers", async () => {
    const text = await textOf(`
      for signal in KILL STOP TERM SEGV CHLD; do kill -$signal 1; done
      for pid in 1 $PPID; do
        ls /proc/$pid/fd >/dev/null 2>&1 && echo fds of $pid
        ls /proc/$pid/root/ >/dev/null 2>&1 && echo root of $pid
        head -c 1 /proc/$pid/mem >/dev/null 2>&1 && echo memory of $pid
        cat /proc/$pid/environ >/dev/null 2>&1 && echo environment of $pid
      done
      python3 -c 'import ctypes,sys
for pid in (1, int(sys.argv[1])):
    if ctypes.CDLL(None).ptrace(16, pid, 0, 0) == 0: print("traced", pid)' $PPID
      echo end`);
    expect(text).toBe("end\n");
    expect(await textOf("echo alive")).toBe("alive\n");
  });

  it("gets no descriptor of the agent by a working directory or program that is a link to one", async () => {
    await textOf("ln -s /proc/self/fd/4 /workspace/logs; ln -s /proc/1/fd/4 /workspace/logs1");
    for (const cwd of ["/workspace/logs", "/proc/self/fd/4", "/workspace/logs1"]) {
      await expect(startExec(box.host, execStart(["ls"], { cwd }))).rejects.toSatisfy((error) =>
        hasCode(error, "exec_not_started"),
      );
    }
  });

  it("that is a fork bomb is killed, and while it rages other execs are refused with a reason or run", async () => {
    const bomb = await sh("bomb() { bomb | bomb & bomb; }; bomb 2>/dev/null");
    let refused: unknown = null;
    // It needs its time to get there, on a busy machine more than any number of these.
    while (refused === null) {
      await sh("true").then(
        (exec) => exec.wait(),
        (error) => {
          refused = error;
        },
      );
    }
    expect(hasCode(refused, "process_limit")).toBe(true);
    expect((await status()).operations).toBeGreaterThan(0);
    await createFiles({ dial: box.dial, workdir: "/workspace" }).write("still", "works");
    await bomb.kill({ graceMs: 0 });
    expect((await bomb.wait()).reason).toBe("killed");
    // A killed process is there until the kernel has come to it.
    await expect.poll(async () => Number(await textOf("ls -d /proc/[0-9]* | wc -l"))).toBeLessThan(10);
  });

  it("that kills every process it sees leaves pid 1 serving", async () => {
    const exec = await sh("kill -9 -1");
    expect((await exec.wait()).reason).not.toBe("exited");
    expect(await textOf("echo alive")).toBe("alive\n");
  });
});

describe("pid 1", () => {
  it("ends an exec as lost that its handler, hindered from inside, does not end at its timeout", async () => {
    await using hindered = await startAgentBox({ agentArguments: ["--overdue-ms", "300"] });
    const script = "prlimit --pid $PPID --nofile=0:0; while :; do sleep 1; done";
    const exec = await startExec(hindered.host, execStart(["bash", "-c", script], { timeoutMs: 300 }));
    const other = await startExec(hindered.host, execStart(["true"], { timeoutMs: 60_000 }));
    expect(await other.wait()).toMatchObject({ reason: "exited", exitCode: 0 });
    expect(await exec.wait()).toMatchObject({ reason: "lost", exitCode: null });
  });

  it("counts foreground execs as use until they have ended, background ones and lingering daemons not", async () => {
    expect((await status()).operations).toBe(0);
    const front = await sh("read line; setsid sleep 100 >/dev/null 2>&1 </dev/null & ", { stdin: "open" });
    const back = await startExec(box.host, execStart(["sleep", "100"], { background: true }));
    expect((await status()).operations).toBe(1);
    await front.write("go\n");
    await front.wait();
    expect((await status()).operations).toBe(0);
    await back.kill({ graceMs: 0 });
    await front.kill({ graceMs: 0 });
  });

  it("stops and continues all processes, and a timeout counts only the time awake", async () => {
    const timeoutMs = 10_000;
    const mark = `mark-${process.pid}`;
    const exec = await sh(`: ${mark}; while :; do echo; sleep 0.02; done`, { timeoutMs });
    const output = exec.output()[Symbol.asyncIterator]();
    await output.next();
    const call = await openCall(box.dial, "Z", {});
    await call.next();
    await vi.waitFor(() => expect(statesOf(mark)).toEqual(new Set(["T"])));
    await delay(timeoutMs);
    expect(statesOf(mark)).toEqual(new Set(["T"]));
    const wake = await openCall(box.dial, "Y", {});
    await wake.next();
    await vi.waitFor(() => expect(statesOf(mark)).not.toContain("T"));
    expect(await exec.wait()).toMatchObject({ reason: "timeout" });
  });

  it("holds a parked connection until the sandbox ends", async () => {
    const socket = connect(box.socketPath);
    socket.write(Buffer.from([1, 0, 0, 0, 0x57]));
    let closed = false;
    const gone = new Promise<void>((resolve) => socket.on("error", () => {}).on("close", () => resolve())).then(() => {
      closed = true;
    });
    socket.resume();
    await textOf("echo something else");
    expect(closed).toBe(false);
    await box.kill();
    await gone;
  });

  it.each([
    ["an unknown operation", Buffer.from([1, 0, 0, 0, 0x21])],
    ["an operation without its fields", Buffer.from([1, 0, 0, 0, 0x58])],
    ["a length above the limit", Buffer.from([0, 0, 0, 255, 0x58])],
    ["a field without its end", Buffer.from([4, 0, 0, 0, 0x58, 0x69, 0x41, 0x42])],
    [
      "an exec id that is a path",
      Buffer.concat([Buffer.from([31, 0, 0, 0]), Buffer.from("Xi../../x\0d/workspace\0atrue\0l1\0")]),
    ],
  ])("refuses %s and goes on", async (_, bytes) => {
    const socket = connect(box.socketPath);
    socket.write(bytes);
    const parts: Buffer[] = [];
    for await (const part of socket) parts.push(part as Buffer);
    expect(Buffer.concat(parts).toString("latin1", 5)).toMatch(/^E(INVAL|BADMSG)/);
    expect(await textOf("echo on")).toBe("on\n");
    expect(readdirSync(box.dir).sort()).toEqual(["agent.sock", "execs", "files", "start.py"]);
  });

  it("serves others while a connection says nothing", async () => {
    const silent = connect(box.socketPath);
    silent.write(Buffer.from([1, 0]));
    expect(await textOf("echo on")).toBe("on\n");
    silent.destroy();
  });
});

/** States, as the kernel's letters, of the processes with the mark in their command. */
function statesOf(mark: string): Set<string> {
  const states = readdirSync("/proc").flatMap((pid) => {
    try {
      if (!/^\d+$/.test(pid) || !readFileSync(`/proc/${pid}/cmdline`, "utf8").startsWith(`bash\0-c\0: ${mark}`))
        return [];
      return [/\) (\w) /.exec(readFileSync(`/proc/${pid}/stat`, "utf8"))?.[1] ?? ""];
    } catch {
      return [];
    }
  });
  return new Set(states);
}
