import { type Duplex, duplexPair, PassThrough } from "node:stream";
import {
  type CreateSandbox,
  type ExecChunk,
  type ExecExit,
  type ExecId,
  type ExecInfo,
  newId,
  type SandboxId,
  SlipwayError,
} from "@slipway/contract";
import { holdPath, parseCreate, parseExec, parseNetwork, parsePort } from "../input.ts";
import type { Capabilities, Exec, OwnedSandbox, SandboxFiles, SandboxProvider } from "../provider.ts";
import { restrict } from "../restricted.ts";

export const fakeCapabilities: Capabilities = {
  pty: false,
  ptyResize: false,
  execSurvivesCaller: false,
  watch: false,
  sleep: false,
  sleepKeepsProcesses: false,
  stopStart: false,
  logsWhileStopped: false,
  snapshotWhileRunning: false,
  egressAllowlist: true,
  egressSecrets: true,
  egressForwards: true,
  egressPorts: true,
  egressRefusals: true,
  previewUrls: false,
  customImages: false,
  gpu: false,
  diskLimit: false,
  rootUser: true,
  hostChannel: false,
  tools: false,
};

/** Plays what a real program would do, and answers its exit code. */
export type FakeProgram = (process: FakeProcess) => Promise<number>;

export interface FakeProcess {
  readonly argv: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  readonly cwd: string;
  readonly stdin: AsyncIterable<Uint8Array>;
  readonly stdout: FakeOutput;
  readonly stderr: FakeOutput;
  /** Aborted when the process is killed. */
  readonly signal: AbortSignal;
  /** Takes connections to a port; they end with the process's kill. */
  listen(port: number, handler: (connection: Duplex) => void): void;
}

interface FakeOutput {
  write(data: Uint8Array | string): void;
}

/**
 * Sandboxes in memory, for tests of what uses a provider: files, and programs by their names. The rest of the port is
 * not there.
 */
export function createFakeProvider(programs: Readonly<Record<string, FakeProgram>> = {}): SandboxProvider {
  const sandboxes = new Map<SandboxId, OwnedSandbox>();
  return {
    capabilities: fakeCapabilities,
    async create(input) {
      const sandbox = createSandbox(parseCreate(input, fakeCapabilities), programs, () => sandboxes.delete(sandbox.id));
      sandboxes.set(sandbox.id, sandbox);
      return sandbox;
    },
    async get(id) {
      const sandbox = sandboxes.get(id);
      if (sandbox === undefined) throw new SlipwayError("sandbox_not_found", `There is no sandbox ${id}.`);
      return sandbox;
    },
    async list({ labels = {} } = {}) {
      const infos = await Promise.all([...sandboxes.values()].map((sandbox) => sandbox.info()));
      return infos.filter((info) => Object.entries(labels).every(([name, value]) => info.labels[name] === value));
    },
  } as Partial<SandboxProvider> as SandboxProvider;
}

type Ports = Map<number, (connection: Duplex) => void>;

function createSandbox(
  request: CreateSandbox,
  programs: Readonly<Record<string, FakeProgram>>,
  forget: () => void,
): OwnedSandbox {
  const { image, workdir, user, ports, labels, tools, cpu, memoryMb, diskMb, processes, lifetimeMs } = request;
  const [id, createdAt] = [newId("sbx"), Date.now()];
  const execs = new Map<ExecId, ReturnType<typeof start>>();
  const listening: Ports = new Map();
  let { network } = request;
  const sandbox: OwnedSandbox = {
    id,
    toolsDirectory: "/tools",
    async info() {
      const secrets = network.secrets.map(({ host, header }) => ({ host, header }));
      const limits = { cpu, memoryMb, diskMb, processes };
      return {
        id,
        provider: "fake",
        image,
        snapshot: null,
        state: "running",
        reason: "started",
        limits,
        workdir,
        user,
        createdAt,
        stateChangedAt: createdAt,
        expiresAt: createdAt + lifetimeMs,
        ports,
        tools,
        labels,
        network: { ...network, secrets },
      };
    },
    async exec(input) {
      const asked = parseExec(input, fakeCapabilities);
      const program = programs[asked.argv[0] ?? ""];
      if (program === undefined) throw new SlipwayError("exec_not_started", `${asked.argv[0]}: no such program.`);
      const started = start(program, { ...asked, cwd: asked.cwd ?? workdir }, listening);
      execs.set(started.exec.id, started);
      return started.exec;
    },
    async attach(execId) {
      const started = execs.get(execId);
      if (started === undefined) throw new SlipwayError("exec_not_found", `${id} has no exec ${execId}.`);
      return started.exec;
    },
    execs: async () => [...execs.values()].map(({ info }) => info()),
    files: createFiles(workdir),
    async connect(port) {
      const handler = listening.get(parsePort(port, ports));
      if (handler === undefined) throw new SlipwayError("connection_refused", `Nothing listens on port ${port}.`);
      const [outside, inside] = duplexPair();
      handler(inside);
      return outside;
    },
    async setNetwork(policy) {
      network = parseNetwork(policy, fakeCapabilities);
    },
    async destroy() {
      forget();
      for (const { exec } of execs.values()) await exec.kill();
      return { sandbox: id, processesEnded: execs.size, processesGone: true, filesGone: true, destroyedAt: Date.now() };
    },
    restricted: () => restrict(sandbox),
    [Symbol.asyncDispose]: async () => void (await sandbox.destroy()),
  } as Partial<OwnedSandbox> as OwnedSandbox;
  return sandbox;
}

function start(program: FakeProgram, request: ReturnType<typeof parseExec> & { cwd: string }, ports: Ports) {
  const { argv, background } = request;
  const [id, startedAt, killed] = [newId("exc"), Date.now(), new AbortController()];
  const stdin = new PassThrough();
  if (request.stdin === "none") stdin.end();
  const chunks: ExecChunk[] = [];
  const bytes = { stdout: 0, stderr: 0 };
  const ended = Promise.withResolvers<ExecExit>();
  let exit: ExecExit | null = null;
  const end = (how: Pick<ExecExit, "reason" | "exitCode" | "signal">) => {
    exit ??= { ...how, durationMs: Date.now() - startedAt, stdoutBytes: bytes.stdout, stderrBytes: bytes.stderr };
    ended.resolve(exit);
  };
  const output = (type: "stdout" | "stderr"): FakeOutput => ({
    write(text) {
      const data = Buffer.from(text);
      chunks.push({ type, offset: bytes[type], data });
      bytes[type] += data.length;
    },
  });
  const listen: FakeProcess["listen"] = (port, handler) => {
    ports.set(port, (connection) => {
      killed.signal.addEventListener("abort", () => connection.destroy());
      handler(connection);
    });
  };
  const streams = { stdin, stdout: output("stdout"), stderr: output("stderr") };
  void program({ ...request, ...streams, signal: killed.signal, listen }).then((exitCode) =>
    end({ reason: "exited", exitCode, signal: null }),
  );
  const exec = {
    id,
    async *output() {
      await ended.promise;
      yield* chunks;
    },
    async write(data) {
      if (exit !== null) throw new SlipwayError("exec_ended", "The command has ended.");
      stdin.write(data);
    },
    end: async () => void stdin.end(),
    async kill() {
      killed.abort();
      end({ reason: "killed", exitCode: null, signal: "SIGKILL" });
    },
    wait: () => ended.promise,
    async [Symbol.asyncDispose]() {},
  } as Partial<Exec> as Exec;
  return { exec, info: (): ExecInfo => ({ id, argv, startedAt, background, exit }) };
}

function createFiles(workdir: string): SandboxFiles {
  const contents = new Map<string, Buffer>();
  return {
    async *read(path) {
      const content = contents.get(holdPath(path, workdir));
      if (content === undefined) throw new SlipwayError("file_not_found", `${path} does not exist.`);
      yield content;
    },
    async write(path, content) {
      const whole = Buffer.from(content as string);
      contents.set(holdPath(path, workdir), whole);
      return { bytes: whole.length };
    },
    async *list(path) {
      const inside = `${holdPath(path, workdir)}/`;
      for (const [file, { length }] of contents) {
        if (!file.startsWith(inside) || file.includes("/", inside.length)) continue;
        yield { path: file, type: "file", size: length, mode: 0o644, modifiedAt: 0, symlinkTarget: null };
      }
    },
  } as Partial<SandboxFiles> as SandboxFiles;
}
