import {
  type CreateSandboxInput,
  createSandboxSchema,
  type ExecChunk,
  type ExecExit,
  type ExecRequestInput,
  newId,
  type SandboxId,
  type SandboxInfo,
  SlipwayError,
} from "@slipway/contract";
import type { Exec, OwnedSandbox, Sandbox, SandboxProvider } from "@slipway/sandbox";

export const exited = (exitCode: number): ExecExit => ({ ...blankExit, reason: "exited", exitCode });
export const blankExit: ExecExit = {
  reason: "lost",
  exitCode: null,
  signal: null,
  durationMs: 5,
  stdoutBytes: 0,
  stderrBytes: 0,
};

/** A provider that runs nothing: it keeps what it was asked for, and answers as the test tells it to. */
export interface StubProvider extends SandboxProvider {
  readonly created: CreateSandboxInput[];
  readonly infos: Map<SandboxId, SandboxInfo>;
  /** Replaces parts of every sandbox it gives out. */
  sandbox: Partial<Sandbox>;
}

export function createStubProvider(
  parts: Partial<SandboxProvider> = {},
  sandboxParts: Partial<Sandbox> = {},
): StubProvider {
  const infos = new Map<SandboxId, SandboxInfo>();
  const created: CreateSandboxInput[] = [];
  const open = (id: SandboxId) => {
    const info = infos.get(id);
    if (!info) throw new SlipwayError("sandbox_not_found", `There is no sandbox ${id}.`);
    const known = { id, info: async () => info, ...stub.sandbox } as OwnedSandbox;
    return refusing(known);
  };
  const stub = {
    name: "stub",
    created,
    infos,
    sandbox: sandboxParts,
    async create(input: CreateSandboxInput) {
      created.push(input);
      return open(addSandbox(stub, input).id);
    },
    get: async (id: SandboxId) => open(id),
    list: async (filter: { labels?: Record<string, string> } = {}) =>
      [...infos.values()].filter((info) =>
        Object.entries(filter.labels ?? {}).every(([key, value]) => info.labels[key] === value),
      ),
    prepareImage: async () => {},
    async [Symbol.asyncDispose]() {},
    ...parts,
  } as unknown as StubProvider;
  return refusing(stub);
}

export function addSandbox(
  stub: Pick<StubProvider, "infos">,
  input: CreateSandboxInput = {},
  changes: Partial<SandboxInfo> = {},
): SandboxInfo {
  const request = createSandboxSchema.parse(input);
  const info: SandboxInfo = {
    id: newId("sbx"),
    provider: "stub",
    image: request.image,
    snapshot: null,
    state: "running",
    reason: "started",
    createdAt: Date.now() - 90_000,
    stateChangedAt: Date.now(),
    expiresAt: Date.now() + 3_600_000,
    limits: { cpu: request.cpu, memoryMb: request.memoryMb, diskMb: request.diskMb, processes: request.processes },
    workdir: request.workdir,
    user: request.user,
    ports: request.ports,
    tools: request.tools,
    labels: request.labels,
    network: request.network,
    ...changes,
  };
  stub.infos.set(info.id, info);
  return info;
}

export interface StubExec extends Exec {
  readonly written: Buffer[];
  readonly calls: string[];
  finish(exit: ExecExit): void;
}

/** A command that has put out the given chunks, and ends when told to, or at once with the given exit. */
export function stubExec(chunks: readonly ExecChunk[] = [], exit?: ExecExit): StubExec {
  const { promise, resolve } = Promise.withResolvers<ExecExit>();
  const written: Buffer[] = [];
  const calls: string[] = [];
  if (exit) resolve(exit);
  return {
    id: newId("exc"),
    written,
    calls,
    finish: resolve,
    async *output({ signal } = {}) {
      yield* chunks;
      signal?.throwIfAborted();
      const aborted = Promise.withResolvers<never>();
      signal?.addEventListener("abort", () => aborted.reject(signal.reason));
      await Promise.race([promise, aborted.promise]);
    },
    write: async (data) => void written.push(Buffer.from(data)),
    end: async () => void calls.push("end"),
    signal: async (name, options) => void calls.push(`${name}${options?.tree ? " tree" : ""}`),
    async kill() {
      calls.push("kill");
      resolve({ ...blankExit, reason: "killed", signal: "SIGKILL" });
    },
    resize: async ({ cols, rows }) => void calls.push(`resize ${cols}x${rows}`),
    wait: () => promise,
    async [Symbol.asyncDispose]() {
      calls.push("dispose");
    },
  };
}

/** A sandbox's `exec` that answers with the given command and keeps the requests. */
export function execOf(exec: Exec) {
  const requests: ExecRequestInput[] = [];
  const start = async (request: ExecRequestInput) => {
    requests.push(request);
    return exec;
  };
  return { requests, exec: start };
}

/** Says which operation a test did not expect, in place of "undefined is not a function". */
function refusing<T extends object>(target: T): T {
  return new Proxy(target, {
    get(object, key) {
      if (key in object || typeof key === "symbol" || key === "then") return Reflect.get(object, key);
      throw new Error(`this test does not expect the use of ${key}`);
    },
  });
}
