import { connect, type Socket } from "node:net";
import {
  type CreateSandbox,
  type DestroyReceipt,
  defaultExecTimeoutMs,
  type ExecExit,
  execIdSchema,
  hasCode,
  newId,
  type SandboxEvent,
  type SandboxId,
  type SandboxInfo,
  SlipwayError,
  sandboxIdSchema,
} from "@slipway/contract";
import { throwIfAborted } from "../../abort.ts";
import { holdPath, parseExec, parseFork, parseNetwork, parsePort } from "../../input.ts";
import type { Capabilities, Exec, OwnedSandbox, Sandbox } from "../../provider.ts";
import { restrict } from "../../restricted.ts";
import type { Dial } from "./agent/connection.ts";
import { attachExec, type ExecHost, startExec } from "./exec/exec.ts";
import { listExecs } from "./exec/log.ts";
import { createFiles } from "./files/files.ts";
import type { DoneBefore, KeeperClient } from "./keeper/client/client.ts";
import { toolsInside } from "./launch/launch.ts";
import { baseEnvironment } from "./launch/skeleton.ts";
import type { Tools } from "./launch/tools.ts";
import type { Layout } from "./layout.ts";
import { openCgroup } from "./limits/cgroup-control.ts";
import { createHostChannels } from "./ports/channel.ts";
import { connectPort } from "./ports/port.ts";
import { liveStates, readRecord, type SandboxRecord, sandboxInfo, upToDate } from "./record.ts";

/** Disposing of it closes the host channels that were opened by its handles. */
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

export function createHandles({ layout, keeper, tools, capabilities }: HandleParts): SandboxHandles {
  const wakefulness = watchSleep(keeper);
  const recordOf = async (id: SandboxId): Promise<SandboxRecord> => {
    const known = sandboxIdSchema.safeParse(id).success;
    const record = known ? await readRecord<SandboxRecord>(layout.sandboxRecord(id)) : null;
    if (record === null) throw new SlipwayError("sandbox_not_found", `there is no sandbox ${id}`);
    return record;
  };
  const settled = async (id: SandboxId): Promise<SandboxRecord> => {
    const record = await recordOf(id);
    if (!liveStates.includes(record.state)) return record;
    // A record is true only under a keeper: a new one checks it first.
    await keeper.connect();
    return await recordOf(id);
  };
  const channels = createHostChannels(
    layout,
    keeper,
    async (id) => (await readRecord(layout.sandboxRecord(id))) !== null,
  );

  const create = (first: SandboxRecord): Sandbox => {
    const { id, request } = first;
    const box = layout.box(id);
    const dial: Dial = () => wakefulness.dial(id, box.agentSocket, () => settled(id));
    const isAlive = async () => liveStates.includes((await settled(id)).state);
    const host: ExecHost = { dial, logDir: box.execs, isAlive };
    const environment = {
      ...baseEnvironment({ user: request.user, egress: true }),
      ...request.env,
      ...request.secrets,
    };
    const files = createFiles({ dial, workdir: request.workdir });
    const killedForMemory = countOomKills(() => recordOf(id).then(({ cgroups }) => cgroups));
    const owned = (fork: SandboxId) => recordOf(fork).then((record) => ownedBy(create(record)));

    const sandbox: Sandbox = {
      id,
      toolsDirectory: toolsInside,
      files,
      async info({ signal } = {}) {
        throwIfAborted(signal);
        return sandboxInfo(await settled(id));
      },
      async exec(input, { signal } = {}) {
        const parsed = parseExec(input, capabilities);
        const start = {
          id: parsed.id ?? newId("exc"),
          argv: parsed.argv,
          cwd: holdPath(parsed.cwd ?? request.workdir, request.workdir),
          env: { ...environment, ...(parsed.pty && { TERM: "xterm-256color" }), ...parsed.env },
          timeoutMs:
            parsed.timeoutMs === undefined ? (parsed.background ? null : defaultExecTimeoutMs) : parsed.timeoutMs,
          stdin: parsed.stdin,
          background: parsed.background,
          pty: parsed.pty,
        };
        return withOomReason(await startExec(host, start, signal), killedForMemory);
      },
      async attach(exec, { from, signal } = {}) {
        await settled(id);
        if (!execIdSchema.safeParse(exec).success) throw new SlipwayError("exec_not_found", `there is no exec ${exec}`);
        const attached = await attachExec(host, exec, { ...(from && { from }), ...(signal && { signal }) });
        return withOomReason(attached, killedForMemory);
      },
      async execs() {
        await settled(id);
        return await listExecs(box.execs, isAlive);
      },
      async connect(port, { signal } = {}) {
        return await connectPort(dial, parsePort(port, request.ports), signal);
      },
      async snapshot({ name, expiresInMs, signal } = {}) {
        const params = { id, snapshot: newId("snp"), name: name ?? null, expiresInMs: expiresInMs ?? null };
        return await keeper.call("snapshot", params, { signal }).catch(async (error: unknown) => {
          // It may have been taken already, and nobody was told.
          if (hasCode(error, "aborted"))
            await keeper.call("deleteSnapshot", { id: params.snapshot }).catch(() => undefined);
          throw error;
        });
      },
      async fork(overrides = {}, { signal } = {}) {
        const { request: own, network } = upToDate(await recordOf(id));
        const request = parseFork(overrides, { ...own, network }, capabilities);
        const newTools = overrides.tools === undefined ? null : await tools.publish(request.tools);
        const params = { id: newId("sbx"), from: id, request, tools: newTools };
        return await owned((await createdOrGone(keeper, keeper.call("fork", params, { signal }), params)).id);
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
          throw new SlipwayError("invalid_request", `${forMs} is no number of milliseconds`);
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
  };
  return {
    open: async (id) => create(await settled(id)),
    owned: async (id) => ownedBy(create(await recordOf(id))),
    [Symbol.asyncDispose]: () => channels[Symbol.asyncDispose](),
  };
}

/** An aborted create may have been done already: what nobody was told of goes, unless its key can name it. */
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
        if (!(error instanceof SlipwayError) || error.code !== "sandbox_not_found") throw error;
      });
    },
  };
}

/** A command that the kernel killed for want of memory says so. */
function withOomReason(exec: Exec, killedForMemory: () => Promise<boolean>): Exec {
  const refine = async (exit: ExecExit): Promise<ExecExit> =>
    exit.reason === "signaled" && exit.signal === "SIGKILL" && (await killedForMemory())
      ? { ...exit, reason: "out_of_memory" }
      : exit;
  return { ...exec, wait: async (options) => refine(await exec.wait(options)) };
}

/** Answers whether the kernel has killed for want of memory since the last time it was asked. */
function countOomKills(cgroupsNow: () => Promise<readonly string[]>): () => Promise<boolean> {
  let seen = { group: "", kills: 0 };
  return async () => {
    const cgroups = await cgroupsNow().catch(() => []);
    const [group] = cgroups;
    if (group === undefined) return false;
    const kills = await (await openCgroup(cgroups)).oomKills();
    // Each start has groups of its own.
    const grown = kills > (seen.group === group ? seen.kills : 0);
    seen = { group, kills };
    return grown;
  };
}

/** Between the keeper's look at a sandbox's use and its freezing lies far less. */
const newCallMs = 1000;

interface Wakefulness {
  /** A connection to the sandbox's agent; wakes the sandbox when it sleeps, or falls asleep before it has answered. */
  dial(id: SandboxId, socketPath: string, record: () => Promise<SandboxRecord>): Promise<Socket>;
}

function watchSleep(keeper: KeeperClient): Wakefulness {
  const asleep = new Map<SandboxId, boolean>();
  const open = new Map<SandboxId, Map<Socket, number>>();
  const wake = (id: SandboxId) => keeper.call("wake", { id });
  keeper.onLost(() => asleep.clear());
  keeper.onEvent((event: SandboxEvent) => {
    if (event.type === "sandbox.destroyed") asleep.delete(event.sandbox);
    if (event.type !== "sandbox.state_changed") return;
    asleep.set(event.sandbox, event.to === "sleeping");
    if (event.to !== "sleeping") return;
    // Put to sleep while a call was on its way, or had just begun: a use that the keeper could not see yet.
    for (const [socket, since] of open.get(event.sandbox) ?? []) {
      // By when it was, not by when it is heard of here.
      const isNew = event.reason === "idle" && event.at - since < newCallMs;
      if (isNew || socket.bytesRead === 0) return void wake(event.sandbox).catch(() => undefined);
    }
  });
  return {
    async dial(id, socketPath, record) {
      if (!asleep.has(id)) {
        const { state } = await record();
        // An event that came meanwhile is newer.
        if (!asleep.has(id)) asleep.set(id, state === "sleeping");
      }
      if (asleep.get(id)) await wake(id);
      const socket = await connected(socketPath, id, record);
      const calls = open.get(id) ?? new Map<Socket, number>();
      open.set(id, calls.set(socket, Date.now()));
      socket.once("close", () => {
        calls.delete(socket);
        if (calls.size === 0) open.delete(id);
      });
      return socket;
    },
  };
}

function connected(path: string, id: SandboxId, record: () => Promise<SandboxRecord>): Promise<Socket> {
  return new Promise((resolve, reject) => {
    const socket = connect(path);
    const fail = (cause: Error) => {
      record().then(({ state, reason }) => {
        const code = reason === "requested" ? "sandbox_not_running" : "sandbox_ended";
        reject(new SlipwayError(code, `${id} is ${state} (${reason})`, { cause }));
      }, reject);
    };
    socket.once("error", fail);
    socket.once("connect", () => {
      socket.off("error", fail);
      resolve(socket);
    });
  });
}
