import { newId, type SandboxEvent, type SandboxId } from "@slipway/contract";
import { throwIfAborted } from "../../abort.ts";
import { parseCreate, parseImage } from "../../input.ts";
import type { Capabilities, SandboxProvider, Snapshots } from "../../provider.ts";
import { createKeeperClient, type KeeperClient } from "../client/client.ts";
import type { KeeperStarter } from "../client/start.ts";
import { type SandboxRecord, sandboxInfo, snapshotInfo } from "../record.ts";
import { createTools } from "../tools/tools.ts";
import type { Reach } from "./reach.ts";
import { createRecords, type Records } from "./records.ts";
import { createdOrGone, createHandles } from "./sandbox.ts";

/** A provider whose sandboxes a keeper looks after. */
export interface KeptProvider<R extends SandboxRecord> {
  readonly name: string;
  readonly capabilities: Capabilities;
  readonly starter: KeeperStarter;
  /** Directories of this machine, by the names in a create's `tools`. */
  readonly tools: Readonly<Record<string, string>>;
  reach(keeper: KeeperClient, records: Records<R>): Reach<R>;
}

export function createKeptProvider<R extends SandboxRecord>(kept: KeptProvider<R>): SandboxProvider {
  const { name, capabilities, starter } = kept;
  const keeper = createKeeperClient(starter);
  const records = createRecords<R>(starter.layout, keeper);
  const tools = createTools(starter.layout.tools, kept.tools, () => keeper.connect());
  const reach = kept.reach(keeper, records);
  const handles = createHandles<R>({ name, capabilities, keeper, tools, records, reach });
  return {
    name,
    capabilities,
    snapshots: snapshotsOf(records, keeper),
    async create(input, { signal } = {}) {
      throwIfAborted(signal);
      const request = parseCreate(input, capabilities);
      const params = { id: newId("sbx"), request, tools: await tools.publish(request.tools) };
      return await handles.owned((await createdOrGone(keeper, keeper.call("create", params, { signal }), params)).id);
    },
    async get(id, { signal } = {}) {
      throwIfAborted(signal);
      return await handles.open(id);
    },
    async list({ states, labels = {} } = {}, { signal } = {}) {
      throwIfAborted(signal);
      const wanted = Object.entries(labels);
      return (await records.list())
        .map((record) => sandboxInfo(record, name))
        .filter((info) => states === undefined || states.includes(info.state))
        .filter((info) => wanted.every(([label, value]) => info.labels[label] === value));
    },
    async prepareImage(image, { signal, onProgress } = {}) {
      const params = { image: parseImage(image, capabilities) };
      const { built } = await keeper.call("prepareImage", params, { signal, onProgress });
      if (built === null) return undefined;
      return { remove: async (options = {}) => void (await keeper.call("removeImage", { key: built }, options)) };
    },
    events: ({ sandbox, ...options } = {}) => ofSandbox(keeper.events(options), sandbox),
    reconcile: ({ signal } = {}) => keeper.call("reconcile", {}, { signal }),
    async [Symbol.asyncDispose]() {
      await reach[Symbol.asyncDispose]();
      await keeper[Symbol.asyncDispose]();
    },
  };
}

function snapshotsOf(records: Pick<Records<SandboxRecord>, "snapshots" | "snapshot">, keeper: KeeperClient): Snapshots {
  return {
    async list({ signal } = {}) {
      throwIfAborted(signal);
      return records.snapshots().map(snapshotInfo);
    },
    async get(id, { signal } = {}) {
      throwIfAborted(signal);
      return snapshotInfo(await records.snapshot(id));
    },
    async update(id, change, { signal } = {}) {
      await records.snapshot(id);
      return await keeper.call("updateSnapshot", { id, ...change }, { signal });
    },
    async delete(id, { signal } = {}) {
      await records.snapshot(id);
      await keeper.call("deleteSnapshot", { id }, { signal, done: { code: "snapshot_not_found", result: () => null } });
    },
  };
}

async function* ofSandbox(
  events: AsyncIterable<SandboxEvent>,
  sandbox: SandboxId | undefined,
): AsyncIterable<SandboxEvent> {
  for await (const event of events) if (sandbox === undefined || event.sandbox === sandbox) yield event;
}
