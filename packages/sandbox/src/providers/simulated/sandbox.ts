import { type Duplex, duplexPair } from "node:stream";
import { isDeepStrictEqual } from "node:util";
import {
  type DestroyReceipt,
  defaultExecTimeoutMs,
  type ExecId,
  type ExecInfo,
  type ExecOffsets,
  type ExecRequestInput,
  hasCode,
  type NetworkPolicyInput,
  type SandboxId,
  type SandboxInfo,
  SlipwayError,
  type SnapshotInfo,
} from "@slipway/contract";
import { holdPath, missing, parseExec, parseFork, parseNetwork, parsePort } from "../../input.ts";
import type {
  CallOptions,
  Exec,
  ForkOverrides,
  HostChannel,
  OwnedSandbox,
  RestrictedSandbox,
  SnapshotOptions,
} from "../../provider.ts";
import { restrict } from "../../restricted.ts";
import type { Box } from "./box.ts";
import { simulatedCapabilities } from "./capabilities.ts";
import { openChannel } from "./channel.ts";
import type { Connection } from "./connection.ts";
import { egress } from "./egress.ts";
import { ExecRecord, type StartedRequest } from "./exec.ts";
import { SimulatedExec } from "./exec-handle.ts";
import { SimulatedFiles } from "./files.ts";
import type { ProcessHost } from "./process.ts";

const baseEnv = { PATH: "/usr/local/bin:/usr/bin:/bin", HOME: "/home/agent", LANG: "C.UTF-8" };

/** A coordinator's handle on a sandbox. */
export class SimulatedSandbox implements OwnedSandbox {
  readonly id: SandboxId;
  readonly files: SimulatedFiles;
  readonly #connection: Connection;
  readonly #box: Box;

  constructor(box: Box, connection: Connection) {
    this.id = box.id;
    this.#box = box;
    this.#connection = connection;
    this.files = new SimulatedFiles({
      begin: async (operation, signal) => {
        const lost = await connection.begin(operation, signal);
        if (lost !== null) throw lost;
        const use = box.use();
        return { store: box.store(), signal: connection.during(signal), [Symbol.dispose]: () => use[Symbol.dispose]() };
      },
    });
  }

  async info(options?: CallOptions): Promise<SandboxInfo> {
    return await this.#call("info", options, (box) => box.info());
  }

  async exec(input: ExecRequestInput, options?: CallOptions): Promise<Exec> {
    const request = parseExec(input, simulatedCapabilities);
    return await this.#call("exec", options, (box) => {
      const earlier = request.id === undefined ? undefined : box.execs.get(request.id);
      if (earlier === undefined) return new SimulatedExec(this.#start(box, request), this.#connection);
      if (isDeepStrictEqual(earlier.request, request)) return new SimulatedExec(earlier, this.#connection);
      throw new SlipwayError("idempotency_conflict", `${request.id} was used for another command.`);
    });
  }

  async attach(id: ExecId, options?: CallOptions & { from?: ExecOffsets }): Promise<Exec> {
    return await this.#call("attach", options, (box) => {
      const record = box.execs.get(id);
      if (record === undefined) throw new SlipwayError("exec_not_found", `${box.id} has no exec ${id}.`);
      return new SimulatedExec(record, this.#connection, options?.from);
    });
  }

  async execs(options?: CallOptions): Promise<ExecInfo[]> {
    return await this.#call("execs", options, (box) => [...box.execs.values()].map((record) => record.info()));
  }

  async connect(port: number, options?: CallOptions): Promise<Duplex> {
    return await this.#call("connect", options, (box) => {
      parsePort(port, box.request.ports);
      const use = box.use();
      const handler = box.ports.get(port);
      if (handler === undefined) {
        use[Symbol.dispose]();
        throw new SlipwayError("connection_refused", `Nothing listens on port ${port} of ${box.id}.`);
      }
      const [outside, inside] = duplexPair();
      outside.once("close", () => use[Symbol.dispose]());
      this.#connection.during(undefined).addEventListener("abort", () => outside.destroy(), { once: true });
      handler(inside);
      return outside;
    });
  }

  async snapshot(options: SnapshotOptions = {}): Promise<SnapshotInfo> {
    const { name, expiresInMs } = options;
    if (expiresInMs !== undefined) requireDuration(expiresInMs);
    return await this.#call("snapshot", options, (box) =>
      this.#world.capture(box, { name, expiresInMs, checkpoint: false }),
    );
  }

  async fork(overrides: ForkOverrides = {}, options?: CallOptions): Promise<OwnedSandbox> {
    const { snapshot: _snapshot, ...inherited } = this.#box.request;
    const request = parseFork(overrides, { ...inherited, network: this.#box.network }, simulatedCapabilities);
    return await this.#call("fork", options, (box) => {
      const fork = this.#world.createOn(box.tree, request);
      fork.start();
      return new SimulatedSandbox(fork, this.#connection);
    });
  }

  async sleep(options?: CallOptions): Promise<void> {
    await this.#call("sleep", options, (box) => box.sleep("requested"));
  }

  async wake(options?: CallOptions): Promise<void> {
    await this.#call("wake", options, (box) => box.wake());
  }

  async stop(options?: CallOptions): Promise<void> {
    await this.#call("stop", options, (box) => box.stop("requested"));
  }

  async start(options?: CallOptions): Promise<void> {
    await this.#call("start", options, (box) => box.start());
  }

  async destroy(options?: CallOptions): Promise<DestroyReceipt> {
    return await this.#call("destroy", options, (box) => box.destroy("requested"));
  }

  async keepAlive(forMs: number, options?: CallOptions): Promise<{ expiresAt: number }> {
    requireDuration(forMs);
    return await this.#call("keepAlive", options, (box) => ({ expiresAt: box.keepAlive(forMs) }));
  }

  async setNetwork(input: NetworkPolicyInput, options?: CallOptions): Promise<void> {
    const policy = parseNetwork(input, simulatedCapabilities);
    await this.#call("setNetwork", options, (box) => {
      box.network = policy;
    });
  }

  async previewUrl(_port: number, options?: CallOptions): Promise<string> {
    return await this.#call("previewUrl", options, () => {
      throw missing("previewUrls");
    });
  }

  async openChannel(options?: CallOptions): Promise<HostChannel> {
    return await this.#call("openChannel", options, (box) => openChannel(box, this.#connection));
  }

  restricted(): RestrictedSandbox {
    return restrict(this);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    try {
      await this.destroy();
    } catch (error) {
      if (!hasCode(error, "sandbox_not_found")) throw error;
    }
  }

  get #world() {
    return this.#connection.world;
  }

  async #call<T>(
    operation: Parameters<Connection["call"]>[0],
    options: CallOptions | undefined,
    work: (box: Box) => T,
  ): Promise<T> {
    return await this.#connection.call(operation, options, () => {
      this.#box.requireExisting();
      return work(this.#box);
    });
  }

  #start(box: Box, request: StartedRequest): ExecRecord {
    const use = box.use();
    try {
      const cwd = enter(box, request.cwd);
      const program = this.#world.settings.find(request.argv);
      if (program === undefined) throw new SlipwayError("exec_not_started", `${request.argv[0]}: no such program.`);
      if (box.processCount >= box.request.processes) {
        throw new SlipwayError("process_limit", `${box.id} runs ${box.request.processes} processes already.`);
      }
      const id = request.id ?? this.#world.settings.ids("exc", this.#world.clock.now());
      const record = new ExecRecord(
        id,
        request,
        this.#world.clock,
        request.background ? () => undefined : () => use[Symbol.dispose](),
      );
      const timeoutMs =
        request.timeoutMs === undefined ? (request.background ? null : defaultExecTimeoutMs) : request.timeoutMs;
      record.start(program, processHost(box, this.#world.clock, cwd, request), timeoutMs);
      box.execs.set(id, record);
      if (request.background) use[Symbol.dispose]();
      return record;
    } catch (error) {
      use[Symbol.dispose]();
      throw error;
    }
  }
}

function enter(box: Box, cwd: string | undefined): string {
  const path = holdPath(cwd ?? box.request.workdir, box.request.workdir);
  if (box.tree.locate(path, true).node?.type === "directory") return path;
  throw new SlipwayError("exec_not_started", `The working directory ${path} does not exist.`);
}

function processHost(box: Box, clock: ProcessHost["clock"], cwd: string, { env }: StartedRequest): ProcessHost {
  return {
    clock,
    cwd,
    user: box.request.user,
    env: { ...baseEnv, ...box.request.env, ...box.request.secrets, ...env },
    awake: (signal) => box.awake(signal),
    awakeMs: () => box.awakeMs(),
    store: () => box.store(cwd),
    listen(port, handler, signal) {
      const open = new Set<Duplex>();
      box.ports.set(port, (connection) => {
        open.add(connection.once("close", () => open.delete(connection)));
        handler(connection);
      });
      signal.addEventListener("abort", () => {
        box.ports.delete(port);
        for (const connection of open) connection.destroy();
      });
    },
    dial(path, signal) {
      const connection = box.channel?.dial(path) ?? null;
      if (connection === null) throw new SlipwayError("connection_refused", `Nobody listens at ${path}.`);
      signal.addEventListener("abort", () => connection.destroy(), { once: true });
      return connection;
    },
    egress: (host, port) => egress(box, host, port),
    outOfMemory: () => box.emit({ type: "sandbox.out_of_memory", kills: 1 }),
  };
}

function requireDuration(ms: number): void {
  if (Number.isSafeInteger(ms) && ms > 0) return;
  throw new SlipwayError("invalid_request", "A duration is a whole number of milliseconds above 0.");
}
