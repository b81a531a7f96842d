import { found, notFound, refusal } from "../refuse.ts";
import type { SandboxCreateRequest, Tag } from "../wire.ts";
import { type Sandbox, terminated } from "./sandbox.ts";

/** All sandboxes of a stand-in, the ended ones among them. */
export interface Sandboxes extends AsyncDisposable {
  /** The name stays taken while a sandbox with it runs, and while one is being made. */
  add(request: SandboxCreateRequest, make: () => Promise<Sandbox>): Promise<Sandbox>;
  get(id: string): Sandbox;
  ofTask(taskId: string): Sandbox;
  all(): Sandbox[];
  /** Also those that were forgotten. */
  ever(): readonly Sandbox[];
  named(appId: string, name: string, includeEnded: boolean): Sandbox;
  rename(sandbox: Sandbox, name: string): void;
  page(filter: PageFilter): Sandbox[];
  /** Drops it without a trace. */
  forget(id: string): void;
}

export interface PageFilter {
  readonly appId: string;
  /** Only sandboxes made before; 0: all. */
  readonly beforeTimestamp: number;
  readonly includeFinished: boolean;
  readonly tags: readonly Tag[];
}

const pageSize = 100;

export function createSandboxes(): Sandboxes {
  const byId = new Map<string, Sandbox>();
  const byTask = new Map<string, Sandbox>();
  const ever: Sandbox[] = [];
  const names = new Set<string>();
  const making = new Set<Promise<unknown>>();
  const isTaken = (appId: string, name: string) =>
    names.has(`${appId}/${name}`) ||
    [...byId.values()].some((one) => one.name === name && one.appId === appId && one.result === undefined);
  const requireFree = (appId: string, name: string) => {
    if (isTaken(appId, name)) throw refusal("ALREADY_EXISTS", `Sandbox with name '${name}' already exists`);
  };
  const add = async (make: () => Promise<Sandbox>) => {
    const sandbox = await make();
    ever.push(sandbox);
    byId.set(sandbox.id, sandbox);
    byTask.set(sandbox.taskId, sandbox);
    return sandbox;
  };
  return {
    async add({ appId, definition: { name = "" } }, make) {
      if (name !== "") {
        requireFree(appId, name);
        names.add(`${appId}/${name}`);
      }
      const made = add(make);
      making.add(made);
      try {
        return await made;
      } finally {
        making.delete(made);
        names.delete(`${appId}/${name}`);
      }
    },
    get: (id) => found(byId, id, "Sandbox"),
    ofTask: (id) => found(byTask, id, "Task"),
    all: () => [...byId.values()],
    ever: () => ever,
    named(appId, name, includeEnded) {
      const all = [...byId.values()].filter((one) => one.appId === appId && one.name === name);
      const sandbox = all.find(({ result }) => result === undefined) ?? (includeEnded ? all.at(-1) : undefined);
      if (sandbox === undefined) throw notFound(`Sandbox with name '${name}' not found`);
      return sandbox;
    },
    rename(sandbox, name) {
      if (sandbox.name === name) return;
      requireFree(sandbox.appId, name);
      sandbox.name = name;
    },
    page({ appId, beforeTimestamp, includeFinished, tags }) {
      return [...byId.values()]
        .filter((one) => includeFinished || one.result === undefined)
        .filter((one) => (appId === "" || one.appId === appId) && (!beforeTimestamp || one.createdAt < beforeTimestamp))
        .filter((one) => tags.every((tag) => hasTag(one.tags, tag)))
        .sort((a, b) => b.createdAt - a.createdAt)
        .slice(0, pageSize);
    },
    forget(id) {
      const sandbox = byId.get(id);
      byId.delete(id);
      if (sandbox !== undefined) byTask.delete(sandbox.taskId);
    },
    async [Symbol.asyncDispose]() {
      await Promise.allSettled(making);
      await Promise.all([...byId.values()].map((sandbox) => sandbox.end(terminated)));
    },
  };
}

function hasTag(tags: readonly Tag[], { tagName, tagValue }: Tag): boolean {
  return tags.some((tag) => tag.tagName === tagName && tag.tagValue === tagValue);
}

/** What a list shows of a sandbox. */
export function describeSandbox(sandbox: Sandbox): object {
  const { id, taskId, appId, name, definition, result, tunnels, createdAt, startedAtMs, endedAtMs } = sandbox;
  return {
    id,
    createdAt,
    appId,
    name,
    tags: sandbox.tags,
    imageId: definition.imageId,
    timeoutSecs: definition.timeoutSecs,
    idleTimeoutSecs: definition.idleTimeoutSecs,
    regions: definition.schedulerPlacement?.regions ?? [],
    readinessProbe: definition.readinessProbe,
    tunnels: tunnels.data,
    taskInfo: {
      id: taskId,
      sandboxId: id,
      enqueuedAt: createdAt,
      startedAt: startedAtMs / 1000,
      finishedAt: (endedAtMs ?? 0) / 1000,
      result,
    },
    metadata: { appId, result },
  };
}
