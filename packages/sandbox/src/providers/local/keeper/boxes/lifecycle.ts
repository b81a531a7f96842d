import {
  type DestroyReceipt,
  hasCode,
  maxLifetimeMs,
  newId,
  type SandboxId,
  SlipwayError,
  type StateReason,
} from "@slipway/contract";
import { liveStates } from "../../record.ts";
import { type Box, newMemory } from "./boxes.ts";
import { type Creation, type CreationParts, createCreation } from "./creation.ts";
import type { Hold } from "./hold.ts";

/** The states of a sandbox and the transitions between them. Operations on one sandbox run one after the other. */
export interface Lifecycle extends Creation {
  /** Asks `isDue` in the sandbox's turn; does nothing when it is false. */
  sleep(id: SandboxId, reason?: StateReason, isDue?: IsDue): Promise<void>;
  wake(id: SandboxId): Promise<void>;
  stop(id: SandboxId, reason?: StateReason, isDue?: IsDue): Promise<void>;
  start(id: SandboxId, signal: AbortSignal): Promise<void>;
  destroy(id: SandboxId, reason?: StateReason): Promise<DestroyReceipt>;
  keepAlive(id: SandboxId, forMs: number): Promise<{ expiresAt: number }>;
  /** Stops or destroys by the sandbox's `onEnd`, for an end by time, memory or disk. */
  end(id: SandboxId, reason: StateReason, isDue?: IsDue): Promise<void>;
  /** For a sandbox whose processes have ended unasked. */
  died(box: Box): Promise<void>;
}

type IsDue = () => Promise<boolean>;
const always: IsDue = async () => true;

export interface LifecycleParts extends CreationParts {
  readonly hold: Hold;
  collectGarbage(): void;
}

const startFailed = { state: "error", reason: "start_failed" } as const;

export function createLifecycle(parts: LifecycleParts): Lifecycle {
  const { boxes, clock, runtime, hold, layout } = parts;

  const inTurn = async <T>(id: SandboxId, operation: (box: Box) => Promise<T>): Promise<T> => {
    const box = boxes.get(id);
    return await boxes.exclusive(box, () => operation(box));
  };

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

  const endNow = async (box: Box, reason: StateReason) => {
    if (box.record.request.onEnd === "destroy") await destroyNow(box, reason);
    else await stopNow(box, reason);
  };

  const startNow = async (box: Box, signal: AbortSignal) => {
    const before = box.record;
    const reservation = runtime.reserve();
    const startedAt = clock.now();
    boxes.setState(box, "creating", "requested", {
      cgroups: reservation.cgroups,
      expiresAt: startedAt + before.request.lifetimeMs,
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
    box.memory = newMemory(before.request, clock.now());
    boxes.setState(box, "running", "started");
  };

  const wakeNow = async (box: Box) => {
    await hold.thaw(box);
    const { request, stateChangedAt, expiresAt, endsBy } = box.record;
    const sleptMs = clock.now() - stateChangedAt;
    box.memory = { ...newMemory(request, clock.now()), toldEnd: box.memory.toldEnd };
    boxes.setState(box, "running", "woken", { expiresAt: expiresAt + sleptMs, endsBy: endsBy + sleptMs });
  };

  return {
    ...createCreation(parts),
    sleep: (id, reason = "requested", isDue = always) =>
      inTurn(id, async (box) => {
        if (box.record.state === "sleeping") return;
        expectState(box, ["running"], "put to sleep");
        if (!(await isDue())) return;
        await hold.freeze(box);
        boxes.setState(box, "sleeping", reason);
      }),
    wake: (id) =>
      inTurn(id, async (box) => {
        if (box.record.state === "running") return;
        expectState(box, ["sleeping"], "wake");
        await wakeNow(box);
      }),
    stop: (id, reason = "requested", isDue = always) =>
      inTurn(id, async (box) => {
        if (box.record.state === "stopped" || !(await isDue())) return;
        expectState(box, ["running", "sleeping", "error"], "stop");
        await stopNow(box, reason);
      }),
    start: (id, signal) =>
      inTurn(id, async (box) => {
        if (box.record.state === "running") return;
        expectState(box, ["stopped", "error"], "start");
        await startNow(box, signal);
      }),
    destroy: (id, reason = "requested") => inTurn(id, (box) => destroyNow(box, reason)),
    keepAlive: (id, forMs) =>
      inTurn(id, async (box) => {
        expectState(box, ["running", "sleeping"], "keep alive");
        const { expiresAt, endsBy } = box.record;
        boxes.update(box, { expiresAt: Math.min(Math.max(expiresAt, clock.now() + forMs), endsBy) });
        return { expiresAt: box.record.expiresAt };
      }),
    end: (id, reason, isDue = always) =>
      inTurn(id, async (box) => {
        if (isUp(box) && (await isDue())) await endNow(box, reason);
      }),
    died: (box) =>
      boxes.exclusive(box, async () => {
        // Pid 1 closes its connections before the last of its processes is gone.
        if (!isUp(box) || !(await runtime.isGone(box))) return;
        await endNow(box, (await hold.oomKills(box)) > box.oomKills ? "out_of_memory" : "killed");
      }),
  };
}

function isUp({ record }: Box): boolean {
  return record.state === "running" || record.state === "sleeping";
}

function expectState({ id, record: { state, reason } }: Box, states: readonly string[], verb: string): void {
  if (states.includes(state)) return;
  const code = liveStates.includes(state) ? "sandbox_wrong_state" : "sandbox_not_running";
  throw new SlipwayError(code, `Cannot ${verb} ${id}: it is ${state} (${reason}), not ${states.join(" or ")}.`);
}
