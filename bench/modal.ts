import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { chmodSync, mkdtempSync, rmSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import type { ExecId } from "@slipway/contract";
import { type ModalStandIn, startModalStandIn } from "@slipway/modal-stand-in";
import { connectTo } from "@slipway/modal-stand-in/testing";
import type { OwnedSandbox, SandboxProvider } from "@slipway/sandbox";
import { openProvider } from "@slipway/sandbox/open";
import { readSandboxSettings } from "@slipway/sandbox/settings";
import { inTurn, percentile, type Report, ratio } from "./measure.ts";
import { syncVersusFull } from "./storage.ts";

interface Bench {
  readonly standIn: ModalStandIn;
  /** The provider on Modal, against the stand-in. */
  readonly modal: SandboxProvider;
  readonly local: SandboxProvider;
  readonly stateDir: string;
  readonly modalEnvironment: Readonly<Record<string, string>>;
  readonly report: Report;
}

/** Each figure with the name it reports. What is compared runs on this machine: the network to Modal is not in it. */
const figures: Record<string, (bench: Bench) => Promise<void>> = {
  exec_vs_local: execVersusLocal,
  create_vs_local: createVersusLocal,
  reattach_100_s: reattachHundred,
  burst_200_s: burstOfTwoHundred,
  channel_event_p99_ms: channelEvents,
  sync_unchanged_vs_full: ({ report }) => syncVersusFull(report),
};

export async function run(report: Report, only: ReadonlySet<string>): Promise<void> {
  const scratch = mkdtempSync("/var/tmp/slipway-bench-");
  chmodSync(scratch, 0o711);
  const stateDir = join(scratch, "state");
  await using standIn = await startModalStandIn();
  const modalEnvironment = {
    ...standIn.environment,
    SANDBOX_PROVIDER: "modal",
    SLIPWAY_MODAL_TUNNEL_CA: standIn.caFile,
  };
  const { settings } = readSandboxSettings(modalEnvironment);
  const modal = await openProvider({ ...settings, stateDir, environment: process.env });
  const local = await openProvider({ stateDir: join(scratch, "local"), environment: process.env });
  try {
    const bench = { standIn, modal, local, stateDir, modalEnvironment, report };
    for (const [name, measure] of Object.entries(figures)) if (only.size === 0 || only.has(name)) await measure(bench);
  } finally {
    for (const provider of [modal, local]) {
      for (const { id } of await provider.list()) await (await provider.get(id)).destroy();
      await provider[Symbol.asyncDispose]();
    }
    rmSync(scratch, { recursive: true, force: true, maxRetries: 10 });
  }
}

const quick = { lifetimeMs: 3_600_000, idleMs: null } as const;

async function execTrue(sandbox: OwnedSandbox): Promise<void> {
  const exec = await sandbox.exec({ argv: ["true"] });
  for await (const _ of exec.output());
  const { exitCode } = await exec.wait();
  if (exitCode !== 0) throw new Error(`true ended with ${exitCode}`);
}

async function execVersusLocal({ modal, local, report }: Bench): Promise<void> {
  await using far = await modal.create(quick);
  await using near = await local.create(quick);
  const measured = await inTurn(200, { run: () => execTrue(far) }, { run: () => execTrue(near) }, 20);
  ratio(report, "exec_vs_local", { atMost: 4 }, measured);
}

async function createVersusLocal({ modal, local, report }: Bench): Promise<void> {
  const firstExecOf = (provider: SandboxProvider) => {
    const made: OwnedSandbox[] = [];
    return {
      async run() {
        const sandbox = await provider.create(quick);
        made.push(sandbox);
        await execTrue(sandbox);
      },
      async clean() {
        for (const sandbox of made.splice(0)) await sandbox.destroy();
      },
    };
  };
  ratio(report, "create_vs_local", {}, await inTurn(20, firstExecOf(modal), firstExecOf(local), 1));
}

const execs = 100;

/** From the start of a new process until it has output of each of the execs, which run on. */
async function reattachHundred({ modal, stateDir, modalEnvironment, report }: Bench): Promise<void> {
  await using sandbox = await modal.create(quick);
  const script = "n=0; while :; do n=$((n+1)); echo $n; sleep 1; done";
  const ids: ExecId[] = [];
  for (let index = 0; index < execs; index++) {
    const exec = await sandbox.exec({ argv: ["sh", "-c", script], background: true, timeoutMs: null });
    for await (const chunk of exec.output()) if (chunk.type === "stdout") break;
    ids.push(exec.id);
    await exec[Symbol.asyncDispose]();
  }
  const seconds: number[] = [];
  for (let round = 0; round < 5; round++) {
    const startedMs = performance.now();
    const program = fileURLToPath(new URL("modal-reattach.ts", import.meta.url));
    const env = { ...process.env, ...modalEnvironment };
    const child = spawn(process.execPath, ["--disable-warning=ExperimentalWarning", program, stateDir, sandbox.id], {
      stdio: ["pipe", "pipe", "inherit"],
      env,
    });
    child.stdin.end(JSON.stringify(ids));
    await saidDone(child);
    seconds.push((performance.now() - startedMs) / 1000);
    await once(child, "exit");
  }
  const value = percentile(seconds, 0.5);
  report({ name: "reattach_100_s", value, unit: "s", ours: value, baseline: null, rawUnit: "s", n: 5, bound: {} });
}

async function saidDone(child: ChildProcess & { readonly stdout: NodeJS.ReadableStream }): Promise<void> {
  for await (const line of createInterface({ input: child.stdout })) if (line === "done") return;
  throw new Error("the process has not attached to all");
}

/** 200 creates at once by the SDK, until all are listed. The stand-in for it has no processes. */
async function burstOfTwoHundred({ report }: Bench): Promise<void> {
  await using standIn = await startModalStandIn({ processes: false });
  const client = connectTo(standIn);
  const app = await client.apps.fromName("burst", { createIfMissing: true });
  const image = await client.images.fromRegistry("debian").build(app);
  const seconds: number[] = [];
  for (let round = 0; round < 5; round++) {
    const startedMs = performance.now();
    const create = () => client.sandboxes.create(app, image, { command: ["sleep", "60"], encryptedPorts: [8000] });
    const made = await Promise.all(Array.from({ length: 200 }, create));
    const listed = new Set<string>();
    for await (const { sandboxId } of client.sandboxes.list({ appId: app.appId })) listed.add(sandboxId);
    seconds.push((performance.now() - startedMs) / 1000);
    if (!made.every(({ sandboxId }) => listed.has(sandboxId))) throw new Error("a list misses sandboxes");
    await Promise.all(made.map((sandbox) => sandbox.terminate()));
    if (standIn.running().length > 0) throw new Error("sandboxes run on after their end");
  }
  client.close();
  const value = percentile(seconds, 0.5);
  report({ name: "burst_200_s", value, unit: "s", ours: value, baseline: null, rawUnit: "s", n: 5, bound: {} });
}

const events = 1000;
/** Says the time, as a runner says what happens. */
const speaker = (socket: string) => `
const s = require("node:net").connect(${JSON.stringify(socket)});
let n = 0;
s.on("connect", () => {
  const timer = setInterval(() => {
    s.write(Date.now() + "\\n");
    if (++n === ${events}) { clearInterval(timer); s.end(); }
  }, 5);
});`;

/** How old what a program inside says is when the host hears it: as it is, and over a network of 50 ms. */
async function channelEvents({ modal, standIn, report }: Bench): Promise<void> {
  await using sandbox = await modal.create(quick);
  await using channel = await sandbox.openChannel();
  for (const tunnelMs of [0, 50]) {
    standIn.faults.setLatency({ tunnelMs });
    const ages: number[] = [];
    await using exec = await sandbox.exec({ argv: ["node", "-e", speaker(channel.inside)], background: true });
    for await (const connection of channel.connections()) {
      connection.on("error", () => undefined);
      for await (const line of createInterface({ input: connection })) ages.push(Date.now() - Number(line));
      connection.destroy();
      break;
    }
    await exec.wait();
    standIn.faults.setLatency({ tunnelMs: 0 });
    if (ages.length !== events) throw new Error(`${ages.length} of ${events} events were heard`);
    const value = percentile(ages, 0.99);
    const name = tunnelMs === 0 ? "channel_event_p99_ms" : `channel_event_at_${tunnelMs}_ms_p99_ms`;
    report({ name, value, unit: "ms", ours: value, baseline: null, n: events, bound: {} });
  }
}
