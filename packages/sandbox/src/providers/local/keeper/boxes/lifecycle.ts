import { isDeepStrictEqual } from "node:util";
import {
  type CreateSandbox,
  type DestroyReceipt,
  hasCode,
  maxLifetimeMs,
  newId,
  type SandboxId,
  type SandboxInfo,
  SlipwayError,
  type StateReason,
} from "@slipway/contract";
import type { Layout } from "../../layout.ts";
import { type LayerId, liveStates, type RootImage, type SandboxRecord, sandboxInfo, type Tool } from "../../record.ts";
import type { Clock } from "../clock.ts";
import type { Space } from "../watch/space.ts";
import type { Box, Boxes } from "./boxes.ts";
import type { Hold } from "./hold.ts";
import type { Runtime } from "./runtime.ts";

/** The states of a sandbox and the ways between them. Operations on one sandbox run one after the other. */
export interface Lifecycle {
  create(id: SandboxId, wanted: NewSandbox, signal: AbortSignal): Promise<SandboxInfo>;
  fork(id: SandboxId, from: SandboxId, wanted: NewFork, signal: AbortSignal): Promise<SandboxInfo>;
  /** `isDue` is asked in the sandbox's turn; when it denies, nothing happens. */
  sleep(id: SandboxId, reason?: StateReason, isDue?: IsDue): Promise<void>;
  wake(id: SandboxId): Promise<void>;
  stop(id: SandboxId, reason?: StateReason, isDue?: IsDue): Promise<void>;
  start(id: SandboxId, signal: AbortSignal): Promise<void>;
  destroy(id: SandboxId, reason?: StateReason): Promise<DestroyReceipt>;
  keepAlive(id: SandboxId, forMs: number): Promise<{ expiresAt: number }>;
  /** An end by time, memory or disk: stops or destroys, as the sandbox was created to. */
  end(id: SandboxId, reason: StateReason, isDue?: IsDue): Promise<void>;
  /** The sandbox's processes are gone without having been asked to go. */
  died(box: Box): Promise<void>;
}

/** What was asked for, and what the names of its tools stand for. */
export interface NewSandbox {
  readonly request: CreateSandbox;
  readonly tools: readonly Tool[];
}

/** Without tools of its own, a fork has those of its source. */
export interface NewFork {
  readonly request: CreateSandbox;
  readonly tools: readonly Tool[] | null;
}

const startFailed = { state: "error", reason: "start_failed" } as const;

type IsDue = () => Promise<boolean>;
const always: IsDue = async () => true;

/** Where a sandbox's files come from. */
interface Origin {
  readonly image: RootImage;
  readonly lowers: readonly LayerId[];
}

export interface LifecycleParts {
  readonly layout: Layout;
  readonly boxes: Boxes;
  readonly space: Pick<Space, "require">;
  readonly clock: Clock;
  readonly runtime: Runtime;
  readonly hold: Hold;
  /** The layers an image or a snapshot stands for, built when they are not there yet. */
  origin(request: CreateSandbox, signal: AbortSignal): Promise<Origin>;
  /** Makes the sandbox's present files a stack of layers that a fork can start from. */
  layersOf(box: Box): Promise<{ lowers: readonly LayerId[] } & Disposable>;
  removeTree(path: string): Promise<void>;
  collectGarbage(): void;
  onError(box: Box, error: unknown): void;
}

export function createLifecycle(parts: LifecycleParts): Lifecycle {
  const { boxes, clock, runtime, hold, layout, space } = parts;
  const keys = new Map<string, { request: CreateSandbox; created: Promise<SandboxInfo> }>();

  const add = (
    id: SandboxId,
    { request, tools }: NewSandbox,
    { image, lowers }: Origin,
    cgroups: readonly string[],
  ): Box => {
    const now = clock.now();
    const record: SandboxRecord = {
      id,
      request,
      network: request.network,
      state: "creating",
      reason: "requested",
      createdAt: now,
      stateChangedAt: now,
      wasRunning: false,
      expiresAt: now + request.lifetimeMs,
      endsBy: now + maxLifetimeMs,
      image,
      lowers,
      process: null,
      cgroups,
      incremental: null,
      tools,
      owedSnapshot: null,
      previews: {},
    };
    return boxes.add(record);
  };

  const launchNew = (id: SandboxId, wanted: NewSandbox, origin: Origin, signal: AbortSignal): Promise<SandboxInfo> => {
    const reservation = runtime.reserve();
    const box = add(id, wanted, origin, reservation.cgroups);
    return boxes.exclusive(box, async () => {
      try {
        await runtime.launch(box, reservation, signal);
        boxes.setState(box, "running", "started", { wasRunning: true });
        return sandboxInfo(box.record);
      } catch (error) {
        // What can not be removed now has no record, and goes when the keeper reconciles.
        await discard(box).catch((cause) => parts.onError(box, cause));
        boxes.forget(box, "start_failed");
        throw error;
      }
    });
  };

  const discard = async (box: Box) => {
    await runtime.end(box);
    await parts.removeTree(layout.box(box.id).root);
  };

  const settledInfo = (box: Box) => box.queue.then(() => sandboxInfo(boxes.get(box.id).record));

  const createOnce = async (id: SandboxId, wanted: NewSandbox, signal: AbortSignal): Promise<SandboxInfo> => {
    space.require();
    return launchNew(id, wanted, await parts.origin(wanted.request, signal), signal);
  };

  /** A key names one create for as long as its sandbox lives; a failed create frees it. */
  const createByKey = (key: string, id: SandboxId, wanted: NewSandbox, signal: AbortSignal): Promise<SandboxInfo> => {
    const { request } = wanted;
    const recorded = [...boxes.all()].find((box) => box.record.request.idempotencyKey === key);
    const earlier = keys.get(key) ?? (recorded && { request: recorded.record.request, created: settledInfo(recorded) });
    if (earlier !== undefined) {
      if (!isDeepStrictEqual(earlier.request, request))
        throw new SlipwayError("idempotency_conflict", `the idempotency key ${key} was used for a different create`);
      return earlier.created.catch((error: unknown) => {
        // Destroyed meanwhile, or given up by its own caller.
        const isFree = hasCode(error, "sandbox_not_found") || hasCode(error, "aborted");
        if (isFree && !signal.aborted) return createByKey(key, id, wanted, signal);
        throw error;
      });
    }
    const created = createOnce(id, wanted, signal).finally(() => keys.delete(key));
    keys.set(key, { request, created });
    return created;
  };

  /** Ends the processes and says so. The caller holds the sandbox's queue. */
  const stopNow = async (box: Box, reason: StateReason) => {
    await runtime.end(box);
    const owedSnapshot = reason === "slept_out" ? newId("snp", clock.now()) : null;
    boxes.setState(box, "stopped", reason, { process: null, cgroups: [], owedSnapshot });
  };

  const destroyNow = async (box: Box, reason: StateReason): Promise<DestroyReceipt> => {
    const processesEnded = (await hold.processes(box)).length;
    await runtime.end(box);
    boxes.condemn(box);
    await parts.removeTree(layout.box(box.id).root);
    boxes.forget(box, reason);
    parts.collectGarbage();
    return { sandbox: box.id, processesEnded, processesGone: true, filesGone: true, destroyedAt: clock.now() };
  };

  const expect = (box: Box, states: readonly string[], verb: string) => {
    const { state, reason } = box.record;
    if (states.includes(state)) return;
    const code = liveStates.includes(state) ? "sandbox_wrong_state" : "sandbox_not_running";
    throw new SlipwayError(code, `can not ${verb} ${box.id}: it is ${state} (${reason}), not ${states.join(" or ")}`);
  };

  const endNow = (box: Box, reason: StateReason) =>
    box.record.request.onEnd === "destroy" ? destroyNow(box, reason).then(() => undefined) : stopNow(box, reason);

  return {
    create(id, wanted, signal) {
      const existing = boxes.find(id);
      if (existing !== undefined) return settledInfo(existing);
      const { idempotencyKey } = wanted.request;
      return idempotencyKey === undefined
        ? createOnce(id, wanted, signal)
        : createByKey(idempotencyKey, id, wanted, signal);
    },
    async fork(id, from, { request, tools }, signal) {
      const existing = boxes.find(id);
      if (existing !== undefined) return settledInfo(existing);
      const source = boxes.get(from);
      space.require();
      using files = await boxes.exclusive(source, () => parts.layersOf(source));
      const wanted = { request, tools: tools ?? source.record.tools };
      return await launchNew(id, wanted, { image: source.record.image, lowers: files.lowers }, signal);
    },
    async sleep(id, reason = "requested", isDue = always) {
      const box = boxes.get(id);
      await boxes.exclusive(box, async () => {
        if (box.record.state === "sleeping") return;
        expect(box, ["running"], "put to sleep");
        if (!(await isDue())) return;
        await hold.freeze(box);
        boxes.setState(box, "sleeping", reason);
      });
    },
    async wake(id) {
      const box = boxes.get(id);
      await boxes.exclusive(box, async () => {
        if (box.record.state === "running") return;
        expect(box, ["sleeping"], "wake");
        await hold.thaw(box);
        const slept = clock.now() - box.record.stateChangedAt;
        box.memory = {
          ...box.memory,
          checkIdleAt: clock.now() + (box.record.request.idleMs ?? 0),
          lastCheckpointAt: clock.now(),
        };
        boxes.setState(box, "running", "woken", {
          expiresAt: box.record.expiresAt + slept,
          endsBy: box.record.endsBy + slept,
        });
      });
    },
    async stop(id, reason = "requested", isDue = always) {
      const box = boxes.get(id);
      await boxes.exclusive(box, async () => {
        if (box.record.state === "stopped" || !(await isDue())) return;
        expect(box, ["running", "sleeping", "error"], "stop");
        await stopNow(box, reason);
      });
    },
    async start(id, signal) {
      const box = boxes.get(id);
      await boxes.exclusive(box, async () => {
        if (box.record.state === "running") return;
        expect(box, ["stopped", "error"], "start");
        const before = box.record;
        const reservation = runtime.reserve();
        const startedAt = clock.now();
        boxes.setState(box, "creating", "requested", {
          cgroups: reservation.cgroups,
          expiresAt: startedAt + box.record.request.lifetimeMs,
          endsBy: startedAt + maxLifetimeMs,
        });
        try {
          await runtime.launch(box, reservation, signal);
        } catch (error) {
          await runtime.end(box).catch((cause) => parts.onError(box, cause));
          const { state, reason } = hasCode(error, "aborted") ? before : startFailed;
          boxes.setState(box, state, reason, { process: null, cgroups: [] });
          throw error;
        }
        const now = clock.now();
        box.memory = { toldEnd: null, checkIdleAt: now + (box.record.request.idleMs ?? 0), lastCheckpointAt: now };
        boxes.setState(box, "running", "started");
      });
    },
    destroy(id, reason = "requested") {
      const box = boxes.get(id);
      return boxes.exclusive(box, () => destroyNow(box, reason));
    },
    keepAlive(id, forMs) {
      const box = boxes.get(id);
      return boxes.exclusive(box, async () => {
        expect(box, ["running", "sleeping"], "keep alive");
        const { expiresAt, endsBy } = box.record;
        boxes.update(box, { expiresAt: Math.min(Math.max(expiresAt, clock.now() + forMs), endsBy) });
        return { expiresAt: box.record.expiresAt };
      });
    },
    async end(id, reason, isDue = always) {
      const box = boxes.get(id);
      await boxes.exclusive(box, async () => {
        const { state } = box.record;
        if ((state === "running" || state === "sleeping") && (await isDue())) await endNow(box, reason);
      });
    },
    died: (box) =>
      boxes.exclusive(box, async () => {
        if (box.record.state !== "running" && box.record.state !== "sleeping") return;
        // Pid 1 lets go of its connections before the last of its processes is gone.
        if (!(await runtime.isGone(box))) return;
        await endNow(box, (await hold.oomKills(box)) > box.oomKills ? "out_of_memory" : "killed");
      }),
  };
}
