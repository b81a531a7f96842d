import { spawn } from "node:child_process";
import { once } from "node:events";
import { chmodSync, existsSync, mkdtempSync, readdirSync, readFileSync, readlinkSync, rmSync } from "node:fs";
import { Agent, createServer, get } from "node:http";
import { type AddressInfo, connect } from "node:net";
import { join } from "node:path";
import type { Duplex } from "node:stream";
import type { OwnedSandbox, Sandbox, SandboxProvider } from "@slipway/sandbox";
import { openProvider } from "@slipway/sandbox/open";
import { inTurn, median, type Report, ratio, runHost } from "./measure.ts";

interface Bench {
  readonly provider: SandboxProvider;
  readonly stateDir: string;
  readonly scratch: string;
  readonly report: Report;
}

/** Each figure with the name it reports; DESIGN says what it means and what it is held to. */
const figures: Record<string, (bench: Bench) => Promise<void>> = {
  exec_vs_spawn: execVersusSpawn,
  create_exec_vs_bwrap: createVersusBwrap,
  node_vs_node: nodeVersusNode,
  wake_vs_exec: wakeVersusExec,
  port_http_vs_direct: portVersusDirect,
  stdout_vs_pipe: stdoutVersusPipe,
  fork_vs_create: forkVersusCreate,
  snapshot_running_vs_cp: snapshotVersusCopy,
  burst_100_vs_bwrap: burstVersusBwrap,
  idle_mb: idleMemory,
};

export async function run(report: Report, only: ReadonlySet<string>): Promise<void> {
  const scratch = mkdtempSync("/var/tmp/slipway-bench-");
  chmodSync(scratch, 0o711);
  const stateDir = join(scratch, "state");
  const provider = await openProvider({ stateDir, environment: process.env });
  try {
    for (const [name, measure] of Object.entries(figures)) {
      if (only.size === 0 || only.has(name)) await measure({ provider, stateDir, scratch, report });
    }
  } finally {
    for (const { id } of await provider.list()) await (await provider.get(id)).destroy();
    await provider[Symbol.asyncDispose]();
    rmSync(scratch, { recursive: true, force: true });
  }
}

const quick = { lifetimeMs: 3_600_000, idleMs: null } as const;

async function execTrue(sandbox: Sandbox): Promise<void> {
  await execToEnd(sandbox, ["true"]);
}

async function execToEnd(sandbox: Sandbox, argv: string[]): Promise<number> {
  const exec = await sandbox.exec({ argv });
  let bytes = 0;
  for await (const chunk of exec.output()) if (chunk.type === "stdout") bytes += chunk.data.length;
  const { exitCode } = await exec.wait();
  if (exitCode !== 0) throw new Error(`${argv.join(" ")} ended with ${exitCode}`);
  return bytes;
}

const links = ["bin", "lib", "lib64", "sbin"].filter((name) => existsSync(`/usr/${name}`));
const bwrapTrue = [
  ...[
    "--unshare-all",
    "--ro-bind",
    "/usr",
    "/usr",
    ...links.flatMap((name) => ["--symlink", `usr/${name}`, `/${name}`]),
  ],
  ...["--proc", "/proc", "--dev", "/dev", "true"],
];

async function execVersusSpawn({ provider, report }: Bench): Promise<void> {
  await using sandbox = await provider.create(quick);
  ratio(
    report,
    "exec_vs_spawn",
    { atMost: 1.1 },
    await inTurn(200, { run: () => execTrue(sandbox) }, { run: () => runHost("true") }, 20),
  );
}

async function createVersusBwrap({ provider, report }: Bench): Promise<void> {
  const measured = await inTurn(
    40,
    firstExecOf(() => provider.create(quick)),
    { run: () => runHost("bwrap", bwrapTrue) },
  );
  ratio(report, "create_exec_vs_bwrap", { atMost: 1.8 }, measured);
}

/** Until the first exec of a new sandbox has ended; the sandbox's end is not counted. */
function firstExecOf(create: () => Promise<OwnedSandbox>, argv = ["true"]) {
  const made: OwnedSandbox[] = [];
  return {
    async run() {
      const sandbox = await create();
      made.push(sandbox);
      await execToEnd(sandbox, argv);
    },
    async clean() {
      for (const sandbox of made.splice(0)) await sandbox.destroy();
    },
  };
}

async function nodeVersusNode({ provider, report }: Bench): Promise<void> {
  const node = ["/usr/bin/node", "-e", "0"];
  const ours = firstExecOf(() => provider.create(quick), node);
  ratio(
    report,
    "node_vs_node",
    { atMost: 1.4 },
    await inTurn(25, ours, { run: () => runHost("/usr/bin/node", node.slice(1)) }),
  );
}

async function wakeVersusExec({ provider, report }: Bench): Promise<void> {
  await using sandbox = await provider.create(quick);
  const woken = {
    prepare: () => sandbox.sleep(),
    async run() {
      await sandbox.wake();
      await execTrue(sandbox);
    },
  };
  ratio(report, "wake_vs_exec", { atMost: 2 }, await inTurn(60, woken, { run: () => execTrue(sandbox) }));
}

const serverSource = (port: number) =>
  `require("node:http").createServer((q, s) => s.end("hello")).listen(${port}, "127.0.0.1", () => console.log("up"))`;

async function portVersusDirect({ provider, report }: Bench): Promise<void> {
  await using sandbox = await provider.create(quick);
  await startServer(sandbox);
  const direct = createServer((_, response) => response.end("hello")).listen(0, "127.0.0.1");
  await once(direct, "listening");
  const { port } = direct.address() as AddressInfo;
  const measured = await inTurn(
    200,
    { run: async () => request(await sandbox.connect(3000)) },
    { run: async () => request(connect(port, "127.0.0.1")) },
    20,
  );
  direct.close();
  ratio(report, "port_http_vs_direct", { atMost: 3 }, measured);
}

async function startServer(sandbox: Sandbox): Promise<void> {
  const server = await sandbox.exec({ argv: ["/usr/bin/node", "-e", serverSource(3000)], background: true });
  for await (const chunk of server.output()) if (chunk.type === "stdout") break;
}

function request(connection: Duplex): Promise<void> {
  const agent = new Agent();
  agent.createConnection = () => connection as never;
  return new Promise((resolve, reject) => {
    get({ host: "127.0.0.1", path: "/", agent }, (response) => {
      response.resume();
      response.on("end", resolve);
    }).on("error", reject);
  });
}

async function stdoutVersusPipe({ provider, report }: Bench): Promise<void> {
  const bytes = 100_000_000;
  await using sandbox = await provider.create(quick);
  const command = ["head", "-c", String(bytes), "/dev/zero"];
  const ours = {
    async run() {
      if ((await execToEnd(sandbox, command)) !== bytes) throw new Error("bytes are missing");
    },
  };
  const { ours: mine, baseline, n } = await inTurn(20, ours, { run: () => runHost("head", command.slice(1)) });
  report({
    name: "stdout_vs_pipe",
    value: baseline / mine,
    unit: "rate",
    ours: mine,
    baseline,
    n,
    bound: { atLeast: 0.6 },
  });
}

const treeOf20000 = `mkdir -p tree; cd tree; for d in $(seq 200); do mkdir $d; done
head -c 15000 /dev/urandom > block
for d in $(seq 200); do for f in $(seq 100); do cp block $d/$f; done; done; rm block`;

async function withTree(provider: SandboxProvider): Promise<OwnedSandbox> {
  const sandbox = await provider.create(quick);
  await execToEnd(sandbox, ["sh", "-c", treeOf20000]);
  return sandbox;
}

async function forkVersusCreate({ provider, report, stateDir }: Bench): Promise<void> {
  await using source = await withTree(provider);
  await source.stop();
  const create = firstExecOf(() => provider.create(quick));
  ratio(
    report,
    "fork_vs_create",
    { atMost: 1.3 },
    await inTurn(
      25,
      firstExecOf(() => source.fork(quick)),
      create,
    ),
  );

  const kilobytes: number[] = [];
  for (let i = 0; i < 20; i++) kilobytes.push(await diskOfFork(source, stateDir));
  const value = median(kilobytes);
  report({ name: "fork_disk_kb", value, unit: "kB", ours: value, baseline: null, n: 20, bound: { atMost: 64 } });
}

/** What a fork takes once it has run something. */
async function diskOfFork(source: Sandbox, stateDir: string): Promise<number> {
  await using fork = await source.fork(quick);
  await execTrue(fork);
  const paths = [join(stateDir, "boxes", fork.id), join(stateDir, "records/sandboxes", `${fork.id}.json`)];
  const total = (await output("du", ["-skc", ...paths])).trimEnd().split("\n").at(-1);
  return Number(total?.split("\t")[0]);
}

async function snapshotVersusCopy({ provider, report, stateDir, scratch }: Bench): Promise<void> {
  await using sandbox = await withTree(provider);
  await provider.snapshots.delete((await sandbox.snapshot()).id);
  const copy = join(scratch, "copy");
  const ours = {
    async prepare() {
      await execToEnd(sandbox, ["sh", "-c", "for f in $(seq 100); do date +%N > tree/$f/1; done"]);
    },
    async run() {
      await provider.snapshots.delete((await sandbox.snapshot()).id);
    },
  };
  const baseline = {
    run: () => runHost("cp", ["-a", join(stateDir, "boxes", sandbox.id, "upper"), copy]),
    clean: () => runHost("rm", ["-rf", copy]),
  };
  ratio(report, "snapshot_running_vs_cp", { atMost: 0.5 }, await inTurn(20, ours, baseline, 1));
}

async function burstVersusBwrap({ provider, report }: Bench): Promise<void> {
  const hundred = Array.from({ length: 100 });
  const made: OwnedSandbox[] = [];
  const ours = {
    run: () =>
      Promise.all(
        hundred.map(async () => {
          const sandbox = await provider.create(quick);
          made.push(sandbox);
          await execTrue(sandbox);
        }),
      ),
    clean: () => Promise.all(made.splice(0).map((sandbox) => sandbox.destroy())),
  };
  const measured = await inTurn(
    20,
    ours,
    { run: () => Promise.all(hundred.map(() => runHost("bwrap", bwrapTrue))) },
    1,
  );
  ratio(report, "burst_100_vs_bwrap", { atMost: 1.7 }, measured);
}

/** The proportional memory of everything that belongs to a sandbox, of a hundred that have nothing to do. */
async function idleMemory({ provider, report, stateDir }: Bench): Promise<void> {
  const sandboxes = await Promise.all(Array.from({ length: 100 }, () => provider.create(quick)));
  for (const sandbox of sandboxes) await execTrue(sandbox);
  const megabytes = sandboxes.map(({ id }) =>
    processesOf(stateDir, id).reduce((sum, pid) => sum + pssMegabytes(pid), 0),
  );
  await Promise.all(sandboxes.map((sandbox) => sandbox.destroy()));
  const value = median(megabytes);
  report({
    name: "idle_mb",
    value,
    unit: "MB",
    ours: value,
    baseline: null,
    n: megabytes.length,
    bound: { atMost: 0.5 },
  });
}

/** The outer bubblewrap, found by the directory it was given, and all that share the pid namespace of its child. */
function processesOf(stateDir: string, id: string): number[] {
  const { process: first } = JSON.parse(readFileSync(join(stateDir, "records/sandboxes", `${id}.json`), "utf8")) as {
    process: { pid: number };
  };
  const namespace = readlinkSync(`/proc/${first.pid}/ns/pid`);
  const parent = Number(/^PPid:\s+(\d+)/m.exec(readFileSync(`/proc/${first.pid}/status`, "utf8"))?.[1]);
  const inside = readdirSync("/proc").filter((name) => /^\d+$/.test(name) && namespaceOf(name) === namespace);
  return [parent, ...inside.map(Number)];
}

function namespaceOf(pid: string): string | null {
  try {
    return readlinkSync(`/proc/${pid}/ns/pid`);
  } catch {
    return null;
  }
}

function pssMegabytes(pid: number): number {
  return Number(/^Pss:\s+(\d+) kB/m.exec(readFileSync(`/proc/${pid}/smaps_rollup`, "utf8"))?.[1] ?? 0) / 1024;
}

async function output(program: string, args: readonly string[]): Promise<string> {
  const child = spawn(program, args, { stdio: ["ignore", "pipe", "inherit"] });
  let text = "";
  for await (const chunk of child.stdout) text += chunk;
  return text;
}
