import {
  type CreateSandbox,
  createSandboxSchema,
  maxLifetimeMs,
  newId,
  type SandboxEvent,
  type SandboxId,
  type SandboxInfo,
  SlipwayError,
  type SnapshotId,
  type SnapshotInfo,
} from "@slipway/contract";
import type { OwnedSandbox, SandboxProvider, Snapshots } from "@slipway/sandbox";
import { fakeCapabilities } from "@slipway/sandbox/testing/provider";

interface Box {
  info: SandboxInfo;
  readonly request: CreateSandbox;
  /** When its present or last life began, and how long those before it ran. */
  runningSince: number | null;
  ranMs: number;
  bornAt: number;
}

/**
 * Sandboxes that do nothing but run, on a clock of the test: it knows to the millisecond for how long. They end by time as
 * a provider's do.
 */
export function createClockedProvider(clock: { now(): number }, name = "modal") {
  const boxes = new Map<SandboxId, Box>();
  const gone = new Map<SandboxId, number>();
  const events: SandboxEvent[] = [];

  const snapshots = new Map<SnapshotId, SnapshotInfo>();
  let createFailure: SlipwayError | undefined;

  const tell = (event: object, sandbox: SandboxId, at: number) =>
    void events.push({ sequence: events.length + 1, at, sandbox, ...event } as SandboxEvent);
  const move = (box: Box, to: SandboxInfo["state"], at: number) => {
    const from = box.info.state;
    if (box.runningSince !== null) box.ranMs += at - box.runningSince;
    box.runningSince = to === "running" ? at : null;
    box.info = { ...box.info, state: to, stateChangedAt: at };
    tell({ type: "sandbox.state_changed", from, to, reason: "requested" }, box.info.id, at);
  };
  const remove = (box: Box, at: number) => {
    if (box.runningSince !== null) box.ranMs += at - box.runningSince;
    boxes.delete(box.info.id);
    gone.set(box.info.id, box.ranMs);
    tell({ type: "sandbox.destroyed", reason: "requested" }, box.info.id, at);
  };
  const expire = () => {
    for (const box of boxes.values()) {
      const { expiresAt, state } = box.info;
      if (state !== "running" || expiresAt > clock.now()) continue;
      if (box.request.onEnd === "destroy") remove(box, expiresAt);
      else move(box, "stopped", expiresAt);
    }
  };
  const begin = (box: Box) => {
    box.bornAt = clock.now();
    box.info = { ...box.info, expiresAt: clock.now() + box.request.lifetimeMs };
    move(box, "running", clock.now());
  };
  const find = (id: SandboxId): Box => {
    expire();
    const box = boxes.get(id);
    if (box === undefined) throw new SlipwayError("sandbox_not_found", `There is no sandbox ${id}.`);
    return box;
  };
  const sandboxOf = (id: SandboxId): OwnedSandbox => {
    const sandbox = {
      id,
      info: async () => find(id).info,
      async stop() {
        const box = find(id);
        if (box.info.state !== "stopped") move(box, "stopped", clock.now());
      },
      async start() {
        const box = find(id);
        if (box.info.state !== "running") begin(box);
      },
      async destroy() {
        remove(find(id), clock.now());
        return { sandbox: id, processesEnded: 0, processesGone: true, filesGone: true, destroyedAt: clock.now() };
      },
      async snapshot() {
        const { image } = find(id).request;
        const bytes = 1024 ** 3;
        const info = {
          id: newId("snp"),
          name: null,
          sandbox: id,
          image,
          createdAt: clock.now(),
          expiresAt: null,
          bytes,
        };
        snapshots.set(info.id, info);
        return info;
      },
      async keepAlive(forMs: number) {
        const box = find(id);
        const expiresAt = Math.min(Math.max(box.info.expiresAt, clock.now() + forMs), box.bornAt + maxLifetimeMs);
        box.info = { ...box.info, expiresAt };
        return { expiresAt };
      },
      async fork(overrides: object) {
        const { idempotencyKey: _key, ...inherited } = find(id).request;
        return await provider.create({ ...inherited, ...overrides });
      },
      [Symbol.asyncDispose]: async () => void (await sandbox.destroy()),
    } as Partial<OwnedSandbox> as OwnedSandbox;
    return sandbox;
  };
  const provider = {
    name,
    capabilities: { ...fakeCapabilities, stopStart: true, gpu: true },
    snapshots: {
      async get(id) {
        const info = snapshots.get(id);
        if (info === undefined) throw new SlipwayError("snapshot_not_found", `There is no snapshot ${id}.`);
        return info;
      },
      delete: async (id) => void snapshots.delete(id),
    } as Partial<Snapshots> as Snapshots,
    async create(input) {
      if (createFailure !== undefined) throw createFailure;
      const request = createSandboxSchema.parse(input);
      const { cpu, memoryMb, diskMb, processes, labels } = request;
      const [id, at] = [newId("sbx"), clock.now()];
      const limits = { cpu, memoryMb, diskMb, processes };
      const times = { createdAt: at, stateChangedAt: at, expiresAt: at };
      const info = { id, provider: name, state: "creating", reason: "requested", limits, labels, ...times };
      const box: Box = { info: info as unknown as SandboxInfo, request, runningSince: null, ranMs: 0, bornAt: at };
      boxes.set(id, box);
      tell({ type: "sandbox.state_changed", from: null, to: "creating", reason: "requested" }, id, at);
      begin(box);
      return sandboxOf(id);
    },
    async get(id) {
      find(id);
      return sandboxOf(id);
    },
    async list({ labels = {} } = {}) {
      expire();
      const infos = [...boxes.values()].map(({ info }) => info);
      return infos.filter((info) => Object.entries(labels).every(([label, value]) => info.labels[label] === value));
    },
    async *events({ after = 0 } = {}) {
      expire();
      yield* events.filter(({ sequence }) => sequence > after);
    },
  } as Partial<SandboxProvider> as SandboxProvider;
  return {
    provider,
    failCreates: (failure: SlipwayError | undefined) => {
      createFailure = failure;
    },
    /** Of all sandboxes there have been. */
    ranMs(): ReadonlyMap<SandboxId, number> {
      expire();
      const now = [...boxes.values()].map(
        ({ info, ranMs, runningSince }) =>
          [info.id, ranMs + (runningSince === null ? 0 : clock.now() - runningSince)] as const,
      );
      return new Map([...gone, ...now]);
    },
    infos: () => [...boxes.values()].map(({ info }) => info),
  };
}
