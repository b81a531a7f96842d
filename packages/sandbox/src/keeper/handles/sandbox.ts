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
} from "@slipway/contract";
import { throwIfAborted } from "../../abort.ts";
import { attachExec, type ExecHost, type ExecStart, startExec } from "../../agent/exec/exec.ts";
import { createFiles } from "../../agent/files/files.ts";
import { connectPort } from "../../agent/ports/port.ts";
import { holdPath, parseExec, parseFork, parseNetwork, parsePort } from "../../input.ts";
import type { Capabilities, OwnedSandbox, Sandbox } from "../../provider.ts";
import { restrict } from "../../restricted.ts";
import type { DoneBefore, KeeperClient } from "../client/client.ts";
import { liveStates, type SandboxRecord, sandboxInfo, upToDate } from "../record.ts";
import type { Tools } from "../tools/tools.ts";
import type { Reach } from "./reach.ts";
import type { Records } from "./records.ts";
import { watchSleep } from "./wakefulness.ts";

export interface SandboxHandles {
  open(id: SandboxId): Promise<Sandbox>;
  /** Disposing of it destroys the sandbox. */
  owned(id: SandboxId): Promise<OwnedSandbox>;
}

export interface HandleParts<R extends SandboxRecord> {
  /** The provider's name. */
  readonly name: string;
  readonly capabilities: Capabilities;
  readonly keeper: KeeperClient;
  readonly tools: Tools;
  readonly records: Records<R>;
  readonly reach: Reach<R>;
}

export function createHandles<R extends SandboxRecord>(parts: HandleParts<R>): SandboxHandles {
  const { keeper, reach, records } = parts;
  const wakefulness = watchSleep(keeper);
  const owned = async (id: SandboxId) => ownedBy(create(await records.read(id)));
  const create = (record: R): Sandbox => {
    const { id } = record;
    const settled = () => records.settled(id);
    const host: ExecHost = {
      dial: (signal) => wakefulness.dial(id, reach.dial(id), settled, signal),
      logs: reach.logs(id),
      isAlive: async () => liveStates.includes((await settled()).state),
    };
    return createHandle({ ...parts, record, host, settled, current: () => records.read(id), owned });
  };
  return { open: async (id) => create(await records.settled(id)), owned };
}

interface Handle<R extends SandboxRecord> extends HandleParts<R> {
  /** As it was when the handle was made. */
  readonly record: R;
  readonly host: ExecHost;
  settled(): Promise<R>;
  current(): Promise<R>;
  owned(id: SandboxId): Promise<OwnedSandbox>;
}

function createHandle<R extends SandboxRecord>(handle: Handle<R>): Sandbox {
  const { keeper, capabilities, tools, record, host, reach, settled, current } = handle;
  const { id, request } = record;
  const environment = { ...reach.environment(record), ...request.env, ...request.secrets };
  const watched = reach.watchExecs(current);
  const sandbox: Sandbox = {
    id,
    toolsDirectory: reach.toolsDirectory,
    files: createFiles({ dial: host.dial, workdir: request.workdir }),
    async info({ signal } = {}) {
      throwIfAborted(signal);
      return sandboxInfo(await settled(), handle.name);
    },
    async exec(input, { signal } = {}) {
      const start = startOf(parseExec(input, capabilities), request.workdir, environment);
      return watched(await startExec(host, start, signal));
    },
    async attach(exec, { from, signal } = {}) {
      await settled();
      if (!execIdSchema.safeParse(exec).success) throw new SlipwayError("exec_not_found", `No exec ${exec}.`);
      return watched(await attachExec(host, exec, { from, signal }));
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
      return await reach.openChannel(id, signal);
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
