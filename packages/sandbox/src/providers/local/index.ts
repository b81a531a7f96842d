import {
  newId,
  type SandboxEvent,
  type SandboxId,
  SlipwayError,
  type SnapshotId,
  snapshotIdSchema,
} from "@slipway/contract";
import { throwIfAborted } from "../../abort.ts";
import { parseCreate, parseImage } from "../../input.ts";
import type { Capabilities, SandboxProvider, Snapshots } from "../../provider.ts";
import { createKeeperClient, type KeeperClient } from "./keeper/client/client.ts";
import { sandboxUid as defaultSandboxUid } from "./launch/launch.ts";
import { createTools } from "./launch/tools.ts";
import { defaultMinFreeMb, type Layout, layoutOf } from "./layout.ts";
import {
  liveStates,
  readRecord,
  readRecords,
  type SandboxRecord,
  type SnapshotRecord,
  sandboxInfo,
  snapshotInfo,
} from "./record.ts";
import { createdOrGone, createHandles } from "./sandbox.ts";

export interface LocalProviderOptions {
  /** Absolute. Holds all of the provider's state; one keeper serves it. */
  readonly stateDir: string;
  /** The uid of sandboxes on the host when this runs as root. */
  readonly sandboxUid?: number | undefined;
  /** What sandboxes leave free of the state directory's disk. Whoever starts the keeper sets it. */
  readonly minFreeMb?: number | undefined;
  /** Environment of host programs such as npm. None of it enters a sandbox. */
  readonly environment?: Readonly<Record<string, string | undefined>>;
  /**
   * Directories of this machine, by the names in a create's `tools`. The sandbox gets a copy at `/opt/<name>`, without
   * links that lead out of the directory.
   */
  readonly tools?: Readonly<Record<string, string>> | undefined;
}

export const localCapabilities: Capabilities = {
  pty: true,
  ptyResize: true,
  execSurvivesCaller: true,
  watch: true,
  sleep: true,
  stopStart: true,
  snapshotWhileRunning: true,
  egressAllowlist: true,
  egressSecrets: true,
  previewUrls: true,
  customImages: true,
  gpu: false,
  hostChannel: true,
  tools: true,
};

/** Sandboxes on this machine: bubblewrap, an overlay file system, and a keeper that outlives its callers. */
export function createLocalProvider(options: LocalProviderOptions): SandboxProvider {
  const layout = layoutOf(options.stateDir);
  const keeper = createKeeperClient(layout, {
    stateDir: options.stateDir,
    sandboxUid: options.sandboxUid ?? defaultSandboxUid,
    minFreeBytes: (options.minFreeMb ?? defaultMinFreeMb) * 1024 * 1024,
    environment: options.environment ?? {},
  });
  const tools = createTools(layout.tools, options.tools ?? {}, () => keeper.connect());
  const handles = createHandles({ layout, keeper, tools, capabilities: localCapabilities });
  return {
    name: "local",
    capabilities: localCapabilities,
    snapshots: snapshotsOf(layout, keeper),
    async create(input, { signal } = {}) {
      throwIfAborted(signal);
      const request = parseCreate(input, localCapabilities);
      const params = { id: newId("sbx"), request, tools: await tools.publish(request.tools) };
      return await handles.owned((await createdOrGone(keeper, keeper.call("create", params, { signal }), params)).id);
    },
    async get(id, { signal } = {}) {
      throwIfAborted(signal);
      return await handles.open(id);
    },
    async list({ states, labels = {} } = {}, { signal } = {}) {
      throwIfAborted(signal);
      await settle(layout, keeper);
      const wanted = Object.entries(labels);
      return readRecords<SandboxRecord>(layout.records.sandboxes)
        .map(sandboxInfo)
        .filter((info) => states === undefined || states.includes(info.state))
        .filter((info) => wanted.every(([name, value]) => info.labels[name] === value));
    },
    async prepareImage(image, { signal, onProgress } = {}) {
      const params = { image: parseImage(image, localCapabilities) };
      const { built } = await keeper.call("prepareImage", params, { signal, onProgress });
      if (built === null) return undefined;
      return { remove: async (options = {}) => void (await keeper.call("removeImage", { key: built }, options)) };
    },
    events: ({ sandbox, ...options } = {}) => ofSandbox(keeper.events(options), sandbox),
    reconcile: ({ signal } = {}) => keeper.call("reconcile", {}, { signal }),
    async [Symbol.asyncDispose]() {
      await handles[Symbol.asyncDispose]();
      await keeper[Symbol.asyncDispose]();
    },
  };
}

function snapshotsOf(layout: Layout, keeper: KeeperClient): Snapshots {
  const find = async (id: SnapshotId): Promise<SnapshotRecord> => {
    const record = snapshotIdSchema.safeParse(id).success
      ? await readRecord<SnapshotRecord>(layout.snapshotRecord(id))
      : null;
    if (record === null) throw new SlipwayError("snapshot_not_found", `No snapshot ${id}.`);
    return record;
  };
  return {
    async list({ signal } = {}) {
      throwIfAborted(signal);
      return readRecords<SnapshotRecord>(layout.records.snapshots).map(snapshotInfo);
    },
    async get(id, { signal } = {}) {
      throwIfAborted(signal);
      return snapshotInfo(await find(id));
    },
    async update(id, change, { signal } = {}) {
      await find(id);
      return await keeper.call("updateSnapshot", { id, ...change }, { signal });
    },
    async delete(id, { signal } = {}) {
      await find(id);
      await keeper.call("deleteSnapshot", { id }, { signal, done: { code: "snapshot_not_found", result: () => null } });
    },
  };
}

/** Without a keeper, what is recorded as live may have ended; a new keeper checks the records before it answers. */
async function settle(layout: Layout, keeper: KeeperClient): Promise<void> {
  const live = readRecords<SandboxRecord>(layout.records.sandboxes).some(({ state }) => liveStates.includes(state));
  if (live) await keeper.connect();
}

async function* ofSandbox(
  events: AsyncIterable<SandboxEvent>,
  sandbox: SandboxId | undefined,
): AsyncIterable<SandboxEvent> {
  for await (const event of events) if (sandbox === undefined || event.sandbox === sandbox) yield event;
}
