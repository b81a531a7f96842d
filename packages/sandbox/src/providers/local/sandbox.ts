import {
  type CreateSandbox,
  type DestroyReceipt,
  defaultExecTimeoutMs,
  execIdSchema,
  hasCode,
  newId,
  type SandboxId,
  type SandboxInfo,
  SlipwayError,
  sandboxIdSchema,
} from "@slipway/contract";
import { throwIfAborted } from "../../abort.ts";
import { attachExec, type ExecHost, type ExecStart, startExec } from "../../agent/exec/exec.ts";
import { logsIn } from "../../agent/exec/logs.ts";
import { createFiles } from "../../agent/files/files.ts";
import { connectPort } from "../../agent/ports/port.ts";
import { holdPath, parseExec, parseFork, parseNetwork, parsePort } from "../../input.ts";
import type { Capabilities, OwnedSandbox, Sandbox } from "../../provider.ts";
import { restrict } from "../../restricted.ts";
import type { DoneBefore, KeeperClient } from "./keeper/client/client.ts";
import { toolsInside } from "./launch/launch.ts";
import { baseEnvironment } from "./launch/skeleton.ts";
import type { Tools } from "./launch/tools.ts";
import type { Layout } from "./layout.ts";
import { watchOomKills } from "./out-of-memory.ts";
import { createHostChannels, type HostChannels } from "./ports/channel.ts";
import { liveStates, readRecord, type SandboxRecord, sandboxInfo, sandboxNotFound, upToDate } from "./record.ts";
import { watchSleep } from "./wakefulness.ts";

/** Disposing of it closes the host channels that its handles have opened. */
export interface SandboxHandles extends AsyncDisposable {
  open(id: SandboxId): Promise<Sandbox>;
  /** Disposing of it destroys the sandbox. */
  owned(id: SandboxId): Promise<OwnedSandbox>;
}

export interface HandleParts {
  readonly layout: Layout;
  readonly keeper: KeeperClient;
  readonly tools: Tools;
  readonly capabilities: Capabilities;
}

export function createHandles(parts: HandleParts): SandboxHandles {
  const { layout, keeper } = parts;
  const wakefulness = watchSleep(keeper);
  const records = readRecordsOf(layout, keeper);
  const exists = async (id: SandboxId) => (await readRecord(layout.sandboxRecord(id))) !== null;
  const channels = createHostChannels(layout, keeper, exists);
  const owned = async (id: SandboxId) => ownedBy(create(await records.read(id)));
  const create = (record: SandboxRecord): Sandbox => {
    const { id } = record;
    const { agentSocket, execs } = layout.box(id);
    const settled = () => records.settled(id);
    const host: ExecHost = {
      dial: () => wakefulness.dial(id, agentSocket, settled),
      logs: logsIn(execs),
      isAlive: async () => liveStates.includes((await settled()).state),
    };
    return createHandle({ ...parts, record, host, settled, current: () => records.read(id), owned, channels });
  };
  return {
    open: async (id) => create(await records.settled(id)),
    owned,
    [Symbol.asyncDispose]: () => channels[Symbol.asyncDispose](),
  };
}

function readRecordsOf(layout: Layout, keeper: KeeperClient) {
  const read = async (id: SandboxId): Promise<SandboxRecord> => {
    const isId = sandboxIdSchema.safeParse(id).success;
    const record = isId ? await readRecord<SandboxRecord>(layout.sandboxRecord(id)) : null;
    if (record === null) throw sandboxNotFound(id);
    return record;
  };
  /** The record once a keeper has checked it: without a keeper, what is recorded as live may have ended. */
  const settled = async (id: SandboxId): Promise<SandboxRecord> => {
    const record = await read(id);
    if (!liveStates.includes(record.state)) return record;
    await keeper.connect();
    return await read(id);
  };
  return { read, settled };
}

interface Handle extends HandleParts {
  /** As it was when the handle was made. */
  readonly record: SandboxRecord;
  readonly host: ExecHost;
  readonly channels: HostChannels;
  settled(): Promise<SandboxRecord>;
  current(): Promise<SandboxRecord>;
  owned(id: SandboxId): Promise<OwnedSandbox>;
}

function createHandle(handle: Handle): Sandbox {
  const { keeper, capabilities, tools, record, host, channels, settled, current } = handle;
  const { id, request } = record;
  const environment = { ...baseEnvironment(request.user), ...request.env, ...request.secrets };
  const withOomReason = watchOomKills(async () => (await current()).cgroups);
  const sandbox: Sandbox = {
    id,
    toolsDirectory: toolsInside,
    files: createFiles({ dial: host.dial, workdir: request.workdir }),
    async info({ signal } = {}) {
      throwIfAborted(signal);
      return sandboxInfo(await settled());
    },
    async exec(input, { signal } = {}) {
      const start = startOf(parseExec(input, capabilities), request.workdir, environment);
      return withOomReason(await startExec(host, start, signal));
    },
    async attach(exec, { from, signal } = {}) {
      await settled();
      if (!execIdSchema.safeParse(exec).success) throw new SlipwayError("exec_not_found", `No exec ${exec}.`);
      return withOomReason(await attachExec(host, exec, { from, signal }));
    },
    async execs() {
      await settled();
      return await host.logs.list(host.isAlive);
    },
    async connect(port, { signal } = {}) {
      return await connectPort(host.dial, parsePort(port, request.ports), signal);
    },
    async snapshot({ name = null, expiresInMs = null, signal } = {}) {
      const params = { id, snapshot: newId("snp"), name, expiresInMs };
      return await keeper.call("snapshot", params, { signal }).catch(async (error: unknown) => {
        // The keeper may have taken it already.
        if (hasCode(error, "aborted"))
          await keeper.call("deleteSnapshot", { id: params.snapshot }).catch(() => undefined);
        throw error;
      });
    },
    async fork(overrides = {}, { signal } = {}) {
      const { request: own, network } = upToDate(await current());
      const request = parseFork(overrides, { ...own, network }, capabilities);
      const newTools = overrides.tools === undefined ? null : await tools.publish(request.tools);
      const params = { id: newId("sbx"), from: id, request, tools: newTools };
      return await handle.owned((await createdOrGone(keeper, keeper.call("fork", params, { signal }), params)).id);
    },
    async sleep({ signal } = {}) {
      await keeper.call("sleep", { id }, { signal });
    },
    async wake({ signal } = {}) {
      await keeper.call("wake", { id }, { signal });
    },
    async stop({ signal } = {}) {
      await keeper.call("stop", { id }, { signal });
    },
    async start({ signal } = {}) {
      await keeper.call("start", { id }, { signal });
    },
    destroy: ({ signal } = {}) => keeper.call("destroy", { id }, { signal, done: destroyed(id) }),
    async keepAlive(forMs, { signal } = {}) {
      if (!Number.isInteger(forMs) || forMs < 1)
        throw new SlipwayError("invalid_request", `${forMs} is not a number of milliseconds.`);
      return await keeper.call("keepAlive", { id, forMs }, { signal });
    },
    async setNetwork(policy, { signal } = {}) {
      await keeper.call("setNetwork", { id, network: parseNetwork(policy, capabilities) }, { signal });
    },
    async previewUrl(port, { signal } = {}) {
      return await keeper.call("preview", { id, port: parsePort(port, request.ports) }, { signal });
    },
    async openChannel({ signal } = {}) {
      throwIfAborted(signal);
      return await channels.open(id);
    },
    restricted: () => restrict(sandbox),
  };
  return sandbox;
}

function startOf(
  { id = newId("exc"), argv, cwd = ".", env, timeoutMs, stdin, background, pty }: ReturnType<typeof parseExec>,
  workdir: string,
  environment: Readonly<Record<string, string>>,
): ExecStart {
  return {
    id,
    argv,
    cwd: holdPath(cwd, workdir),
    env: { ...environment, ...(pty && { TERM: "xterm-256color" }), ...env },
    timeoutMs: timeoutMs === undefined ? (background ? null : defaultExecTimeoutMs) : timeoutMs,
    stdin,
    background,
    pty,
  };
}

/** Destroys what an aborted create has made meanwhile, unless its idempotency key can name it. */
export async function createdOrGone(
  keeper: KeeperClient,
  created: Promise<SandboxInfo>,
  { id, request }: { id: SandboxId; request: CreateSandbox },
): Promise<SandboxInfo> {
  try {
    return await created;
  } catch (error) {
    if (hasCode(error, "aborted") && request.idempotencyKey === undefined)
      await keeper.call("destroy", { id }).catch(() => undefined);
    throw error;
  }
}

/** A keeper ends and removes what has no record before it answers. */
function destroyed(sandbox: SandboxId): DoneBefore<DestroyReceipt> {
  const gone = { processesEnded: 0, processesGone: true, filesGone: true } as const;
  return { code: "sandbox_not_found", result: () => ({ sandbox, ...gone, destroyedAt: Date.now() }) };
}

function ownedBy(sandbox: Sandbox): OwnedSandbox {
  return {
    ...sandbox,
    async [Symbol.asyncDispose]() {
      await sandbox.destroy().catch((error: unknown) => {
        if (!hasCode(error, "sandbox_not_found")) throw error;
      });
    },
  };
}
