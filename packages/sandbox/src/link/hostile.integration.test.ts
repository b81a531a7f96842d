import { existsSync, readdirSync, readFileSync, readlinkSync, statSync } from "node:fs";
import { join } from "node:path";
import { hasCode } from "@slipway/contract";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { execStart } from "../agent/agent-fixture.ts";
import { attachExec, startExec } from "../agent/exec/exec.ts";
import { createFiles } from "../agent/files/files.ts";
import type { Link } from "./link.ts";
import { type LinkBox, startLinkBox, textOf } from "./link-fixture.ts";

let box: LinkBox;
let link: Link;
beforeAll(async () => {
  box = await startLinkBox();
  link = box.link();
});
afterAll(async () => await box[Symbol.asyncDispose]());

async function run(argv: readonly string[]): Promise<string> {
  return await textOf(await startExec(box.hostOf(link), execStart(argv, { cwd: box.workdir })));
}

/** Runs Python that prints one line for each attempt: what failed, or `DONE`. */
async function attempt(tries: string, prelude = ""): Promise<string[]> {
  const script = `
import os, socket, ctypes, signal, errno
libc = ctypes.CDLL(None, use_errno=True)
def call(function, *args):
    if function(*args) < 0: raise OSError(ctypes.get_errno(), "")
def attempt(do):
    try: do(); print("DONE")
    except OSError as e: print(errno.errorcode[e.errno])
${prelude}
${tries}`;
  return (await run(["python3", "-c", script])).trim().split("\n");
}

/** The link's own processes, all of them root's: the link, the agent, handlers of execs. */
function ownProcesses(): number[] {
  const parents = new Map<number, number>();
  for (const name of readdirSync("/proc").filter((entry) => /^\d+$/.test(entry))) {
    try {
      parents.set(Number(name), Number(/\) \w (\d+)/.exec(readFileSync(`/proc/${name}/stat`, "utf8"))?.[1]));
    } catch {}
  }
  const isOurs = (pid: number): boolean => pid === box.process.pid || (pid > 1 && isOurs(parents.get(pid) ?? 0));
  return [...parents.keys()].filter((pid) => isOurs(pid) && statSync(`/proc/${pid}`).uid === 0);
}

describe("a command inside a far sandbox", () => {
  it("has no rights, no groups, no way back to root, and nothing open but its own streams", async () => {
    const text = await run(["sh", "-c", "cat /proc/self/status; id -G; ls -l /proc/self/fd | grep -v /proc/ ; umask"]);
    for (const set of ["CapInh", "CapPrm", "CapEff", "CapAmb"]) expect(text).toMatch(new RegExp(`${set}:\\s+0+\n`));
    expect(text).toMatch(/NoNewPrivs:\s+1\n/);
    expect(text).toContain(`\n${box.uid}\n`);
    expect(text.match(/ -> /g)?.length).toBe(3);
    expect(text).toMatch(/0022\n$/);
  });

  it("gets nothing of the link's environment", async () => {
    expect(await run(["env"])).not.toContain("SLIPWAY");
  });

  it("can neither end, stop nor trace the link, the agent or the handlers, nor read their memory or environment", async () => {
    const exec = await startExec(box.hostOf(link), execStart(["sleep", "100"], { cwd: box.workdir }));
    const pids = ownProcesses();
    expect(pids.length).toBeGreaterThanOrEqual(3);
    const outcomes = await attempt(
      `for pid in ${JSON.stringify(pids)}:
    for number in (signal.SIGKILL, signal.SIGSTOP, signal.SIGTERM, 0): attempt(lambda: os.kill(pid, number))
    attempt(lambda: call(libc.ptrace, 16, pid, 0, 0))
    attempt(lambda: call(libc.ptrace, 0x4206, pid, 0, 0))
    for name in ("environ", "mem", "maps", "fd/3", "fd/4", "cwd", "root", "exe"): attempt(lambda: os.open("/proc/%d/%s" % (pid, name), 0))
    buffer = ctypes.create_string_buffer(16)
    attempt(lambda: call(libc.process_vm_readv, pid, (ctypes.c_void_p * 2)(ctypes.addressof(buffer), 16), 1, (ctypes.c_void_p * 2)(4096, 16), 1, 0))`,
    );
    expect(outcomes.length).toBe(pids.length * 15);
    expect(outcomes.filter((outcome) => !["EPERM", "EACCES"].includes(outcome))).toEqual([]);
    await exec.kill({ graceMs: 0 });
    expect(await exec.wait()).toMatchObject({ reason: "killed" });
  });

  it("can neither read, forge nor remove a log or an exit, nor reach the agent", async () => {
    const victim = execStart(["sh", "-c", "echo truth; exit 7"], { cwd: box.workdir });
    await (await startExec(box.hostOf(link), victim)).wait();
    const log = join(box.state, "execs", victim.id);
    const outcomes = await attempt(`
for path in (${JSON.stringify(log)}, ${JSON.stringify(join(box.state, "execs/forged"))}):
    for flags in (os.O_RDONLY, os.O_WRONLY, os.O_RDWR | os.O_APPEND, os.O_WRONLY | os.O_CREAT): attempt(lambda: os.open(path, flags))
    attempt(lambda: os.unlink(path)); attempt(lambda: os.rename("/etc/hostname", path)); attempt(lambda: os.chmod(path, 0o777))
for path in (${JSON.stringify(box.state)}, ${JSON.stringify(join(box.state, "execs"))}): attempt(lambda: os.listdir(path)); attempt(lambda: os.rename(path, "/tmp/x"))
s = socket.socket(socket.AF_UNIX); attempt(lambda: s.connect(${JSON.stringify(join(box.state, "agent.sock"))}))`);
    expect(outcomes.length).toBe(19);
    expect(outcomes).not.toContain("DONE");
    const files = createFiles({ dial: link.dial, workdir: box.workdir });
    for (const path of [log, join(box.state, "agent.sock"), `/proc/${box.process.pid}/environ`])
      await expect(files.read(path)[Symbol.asyncIterator]().next()).rejects.toSatisfy((error) =>
        hasCode(error, "file_forbidden"),
      );
    await expect(files.write(log, "forged")).rejects.toSatisfy((error) => hasCode(error, "file_forbidden"));
    const again = await attachExec(box.hostOf(link), victim.id);
    expect(await textOf(again)).toBe("truth\n");
    expect(await again.wait()).toMatchObject({ reason: "exited", exitCode: 7 });
  });

  it("has its true exit told whatever it writes to its streams", async () => {
    const exit = Buffer.alloc(38);
    exit.write("x");
    exit.writeUInt32LE(33, 1);
    const bytes = [...exit].map((byte) => `\\${byte.toString(8).padStart(3, "0")}`).join("");
    const liar = execStart(["sh", "-c", `printf '${bytes}'; exit 9`], { cwd: box.workdir });
    await (await startExec(box.hostOf(link), liar)).wait();
    expect(await (await attachExec(box.hostOf(link), liar.id)).wait()).toMatchObject({ exitCode: 9, stdoutBytes: 38 });
  });

  it("cannot listen on the link's port, on any address", async () => {
    const outcomes = await attempt(`
for family, address in ((socket.AF_INET, "0.0.0.0"), (socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::"), (socket.AF_INET6, "::1")):
    for option in (None, socket.SO_REUSEADDR, socket.SO_REUSEPORT):
        s = socket.socket(family)
        if family == socket.AF_INET6: s.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        if option: s.setsockopt(socket.SOL_SOCKET, option, 1)
        attempt(lambda: (s.bind((address, ${box.port})), s.listen()))`);
    expect(outcomes.length).toBe(12);
    expect(outcomes.filter((outcome) => !["EADDRINUSE", "EADDRNOTAVAIL"].includes(outcome))).toEqual([]);
  });

  it("cannot put a socket of its own in the channel's place", async () => {
    await using channel = await link.openChannel();
    const outcomes = await attempt(`
p = ${JSON.stringify(channel.inside)}
attempt(lambda: os.unlink(p)); attempt(lambda: os.rename(p, "/tmp/x")); attempt(lambda: os.chmod(p, 0)); attempt(lambda: os.rename(os.path.dirname(p), "/tmp/x"))`);
    expect(outcomes.filter((outcome) => !["EPERM", "EACCES"].includes(outcome))).toEqual([]);
  });

  it("that kills all it can ends its own, and the agent goes on", async () => {
    const other = await startExec(box.hostOf(link), execStart(["sleep", "100"], { cwd: box.workdir }));
    await run(["python3", "-c", "import os; os.kill(-1, 9)"]);
    expect(await other.wait()).toMatchObject({ reason: "signaled", signal: "SIGKILL" });
    expect(await run(["echo", "on"])).toBe("on\n");
  });

  it("that stops all it can, again and again, does not hinder what is started afterwards", async () => {
    const attacker =
      "import os, signal, time\nend = time.time() + 1\nwhile time.time() < end:\n  os.kill(-1, signal.SIGSTOP)";
    const attack = await startExec(box.hostOf(link), execStart(["python3", "-c", attacker], { cwd: box.workdir }));
    const host = box.hostOf(link);
    const others = Array.from({ length: 8 }, () => startExec(host, execStart(["true"], { cwd: box.workdir })));
    await attack.wait();
    // One that was stopped on its way into its program is given up.
    for (const other of await Promise.allSettled(others))
      if (other.status === "fulfilled") await other.value.kill({ graceMs: 0 });
    expect(await run(["echo", "on"])).toBe("on\n");
  });
});

const daemon = `
import os, sys, time
if os.fork(): sys.exit(0)
os.setsid()
if os.fork(): os._exit(0)
for fd in (0, 1, 2): os.close(fd)
open("daemon", "w").write(str(os.getpid()))
time.sleep(1000)`;

describe("when it is killed,", () => {
  async function withDaemon() {
    const doomed = await startLinkBox();
    const doomedLink = doomed.link();
    const host = doomed.hostOf(doomedLink);
    await startExec(host, execStart(["python3", "-c", daemon], { cwd: doomed.workdir }));
    const file = join(doomed.workdir, "daemon");
    await vi.waitFor(() => expect(existsSync(file) && readFileSync(file, "utf8")).toMatch(/^\d+$/));
    const agentPid = Number(readFileSync(`/proc/${doomed.process.pid}/task/${doomed.process.pid}/children`, "utf8"));
    return { doomed, host, pids: [agentPid, Number(readFileSync(file, "utf8"))] };
  }
  const gone = (pids: number[]) =>
    vi.waitFor(() => expect(pids.filter((pid) => existsSync(`/proc/${pid}/fd`) && isLiving(pid))).toEqual([]));

  it("the link takes everything inside with it, even daemons", async () => {
    const { doomed, host, pids } = await withDaemon();
    await using _ = doomed;
    const exec = await startExec(host, execStart(["sleep", "100"], { cwd: doomed.workdir }));
    doomed.process.kill("SIGKILL");
    await gone(pids);
    expect(await exec.wait()).toMatchObject({ reason: "lost" });
  });

  it("the agent takes the link and the commands with it", async () => {
    const { doomed, host, pids } = await withDaemon();
    await using _ = doomed;
    const exec = await startExec(host, execStart(["sh", "-c", "echo $$; exec sleep 100"], { cwd: doomed.workdir }));
    const { value } = await exec.output()[Symbol.asyncIterator]().next();
    process.kill(pids[0] as number, "SIGKILL");
    await vi.waitFor(() => expect(doomed.process.exitCode).toBe(70));
    await gone([Number(Buffer.from(value.data).toString())]);
    // In a sandbox the end of its command ends it; here nothing does.
    process.kill(pids[1] as number, "SIGKILL");
  });
});

function isLiving(pid: number): boolean {
  try {
    return readlinkSync(`/proc/${pid}/exe`) !== "";
  } catch {
    return false;
  }
}
