import { spawn } from "node:child_process";
import { once } from "node:events";
import { chownSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { newId } from "@slipway/contract";
import { type Dial, dialAgent } from "./connection.ts";
import type { ExecHost, ExecStart } from "./exec/exec.ts";
import { logsIn } from "./exec/logs.ts";

const native = join(dirname(fileURLToPath(import.meta.url)), "../../native");
const uid = 61100;

/** The real agent as pid 1 under real bubblewrap, without the rest of the provider. For tests. */
export interface AgentBox extends AsyncDisposable {
  readonly dir: string;
  readonly socketPath: string;
  readonly logDir: string;
  readonly dial: Dial;
  readonly host: ExecHost;
  /** Ends the sandbox as a machine that loses power would. */
  kill(): Promise<void>;
}

/** Takes descriptors 3, 4 and 5 as the launcher hands them over, then becomes bubblewrap. */
const starter = `
import os, socket, sys
listener = socket.socket(socket.AF_UNIX)
listener.bind(sys.argv[1]); listener.listen(128)
logs = os.open(sys.argv[2], os.O_RDONLY | os.O_DIRECTORY)
for source, target in ((os.dup(3), 25), (listener.fileno(), 23), (logs, 24)): os.dup2(source, target)
for fd in (23, 24, 25): os.dup2(fd, fd - 20, inheritable=True)
os.closerange(6, 100)
os.execvp(sys.argv[3], sys.argv[3:])
`;

export async function startAgentBox(
  options: { agentArguments?: readonly string[]; binds?: readonly string[] } = {},
): Promise<AgentBox> {
  // @ts-expect-error plain JavaScript without types
  const { buildNative } = (await import("../../native/build.mjs")) as { buildNative(): unknown };
  buildNative();
  const dir = mkdtempSync(join(tmpdir(), "slipway-agent-"));
  const logDir = join(dir, "execs");
  const files = join(dir, "files");
  for (const path of [logDir, files]) mkdirSync(path);
  const asRoot = process.getuid?.() === 0;
  if (asRoot) for (const path of [dir, logDir, files]) chownSync(path, uid, uid);
  const socketPath = join(dir, "agent.sock");
  writeFileSync(join(dir, "start.py"), starter);
  const bwrap = bwrapArguments(files, options.binds ?? []);
  const agent = ["/agent", "--processes", "256", ...(options.agentArguments ?? [])];
  const command = ["/usr/bin/python3", join(dir, "start.py"), socketPath, logDir, "bwrap", ...bwrap, ...agent];
  const drop = asRoot ? ["setpriv", "--reuid", String(uid), "--regid", String(uid), "--clear-groups"] : [];
  const [program = "", ...rest] = [...drop, ...command];
  const child = spawn(program, rest, { stdio: ["ignore", "inherit", "inherit", "pipe"] });
  const ready = child.stdio[3] as NodeJS.ReadableStream;
  const closed = once(child, "exit");
  const [first] = await Promise.race([once(ready, "data"), closed.then(() => ["the sandbox did not start"])]);
  if (String(first) !== "ready\n") throw new Error(String(first));
  const dial = dialAgent(socketPath);
  const kill = async () => {
    child.kill("SIGKILL");
    await closed;
    await goneFrom(socketPath);
  };
  return {
    dir,
    socketPath,
    logDir,
    dial,
    host: { dial, logs: logsIn(logDir), isAlive: () => answers(socketPath) },
    kill,
    async [Symbol.asyncDispose]() {
      await kill();
      rmSync(dir, { recursive: true, force: true, maxRetries: 10 });
    },
  };
}

function bwrapArguments(files: string, binds: readonly string[]): string[] {
  const links = ["bin", "sbin", "lib", "lib64"].flatMap((name) => ["--symlink", `usr/${name}`, `/${name}`]);
  return [
    ..."--unshare-user --unshare-pid --unshare-net --unshare-ipc --unshare-uts --disable-userns".split(" "),
    ..."--uid 1000 --gid 1000 --as-pid-1 --new-session --die-with-parent --cap-drop ALL --clearenv".split(" "),
    ...["--bind", files, "/workspace", "--tmpfs", "/tmp", "--tmpfs", "/other", "--ro-bind", "/usr", "/usr", ...links],
    ...["--proc", "/proc", "--dev", "/dev", "--ro-bind", join(native, "build/slipway-agent"), "/agent", ...binds],
  ];
}

/** Whether something listens: a killed sandbox may leave its socket's file. */
function answers(path: string): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(path, () => {
      socket.destroy();
      resolve(true);
    });
    socket.on("error", () => resolve(false));
  });
}

async function goneFrom(path: string): Promise<void> {
  while (await answers(path)) await new Promise((resolve) => setImmediate(resolve));
}

export function execStart(argv: readonly string[], change: Partial<ExecStart> = {}): ExecStart {
  return {
    id: newId("exc"),
    argv,
    cwd: "/workspace",
    env: { PATH: "/usr/local/bin:/usr/bin:/bin", LANG: "C.UTF-8" },
    timeoutMs: null,
    stdin: "none",
    background: false,
    ...change,
  };
}
