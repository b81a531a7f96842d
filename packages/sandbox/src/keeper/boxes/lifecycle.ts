import { type DestroyReceipt, hasCode, newId, type SandboxId, SlipwayError, type StateReason } from "@slipway/contract";
import { lifeFrom, liveStates, type SandboxRecord } from "../record.ts";
import { type Box, newMemory } from "./boxes.ts";
import { type Creation, type CreationParts, createCreation } from "./creation.ts";

/** The states of a sandbox and the transitions between them. Operations on one sandbox run one after the other. */
export interface Lifecycle<R extends SandboxRecord = SandboxRecord> extends Creation {
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
  died(box: Box<R>): Promise<void>;
}

type IsDue = () => Promise<boolean>;
const always: IsDue = async () => true;

export interface LifecycleParts<R extends SandboxRecord, O, P> extends CreationParts<R, O, P> {
  collectGarbage(): void;
}

const startFailed = { state: "error", reason: "start_failed" } as const;

export function createLifecycle<R extends SandboxRecord, O, P>(parts: LifecycleParts<R, O, P>): Lifecycle<R> {
  const { boxes, clock, runtime } = parts;

  const inTurn = async <T>(id: SandboxId, operation: (box: Box<R>) => Promise<T>): Promise<T> => {
    const box = boxes.get(id);
    return await boxes.exclusive(box, () => operation(box));
  };
  const setStopped = (box: Box<R>, reason: StateReason) => {
    const owedSnapshot = reason === "slept_out" ? newId("snp", clock.now()) : null;
    boxes.setState(box, "stopped", reason, { ...runtime.ended, owedSnapshot });
  };
  const stopNow = async (box: Box<R>, reason: StateReason) => {
    await runtime.stop(box);
    setStopped(box, reason);
  };

  const destroyNow = async (box: Box<R>, reason: StateReason): Promise<DestroyReceipt> => {
    const processesEnded = await runtime.processes(box);
    await runtime.end(box);
    boxes.condemn(box, runtime.ended);
    await runtime.removeFiles(box.id);
    boxes.forget(box, reason);
    parts.collectGarbage();
    return { sandbox: box.id, processesEnded, processesGone: true, filesGone: true, destroyedAt: clock.now() };
  };

  const endNow = async (box: Box<R>, reason: StateReason, stopped: typeof stopNow = stopNow) => {
    if (box.record.request.onEnd === "destroy") await destroyNow(box, reason);
    else await stopped(box, reason);
  };
  /** Nothing runs whose files could be kept. */
  const lostNow = async (box: Box<R>, reason: StateReason) => {
    await runtime.end(box);
    setStopped(box, reason);
  };

  const startNow = async (box: Box<R>, signal: AbortSignal) => {
    const before = box.record;
    const launch = runtime.reserve(box.id);
    boxes.setState(box, "creating", "requested", {
      ...launch.recorded,
      ...lifeFrom(clock.now(), before.request, runtime.longestLifeMs),
    });
    try {
      await launch.start(box, signal);
    } catch (error) {
      await runtime.end(box).catch((cause) => parts.onError(box, cause));
      const { state, reason } = hasCode(error, "aborted") ? before : startFailed;
      boxes.setState(box, state, reason, runtime.ended);
      throw error;
    }
    box.memory = newMemory(before.request, clock.now());
    boxes.setState(box, "running", "started");
  };

  const wakeNow = async (box: Box<R>) => {
    const { request, stateChangedAt, expiresAt, endsBy } = box.record;
    const now = clock.now();
    const sleptMs = now - stateChangedAt;
    // Before the start: the program inside is told when it ends.
    boxes.update(box, timesOf<R>(expiresAt + sleptMs, endsBy + sleptMs, now));
    try {
      await runtime.wake(box);
    } catch (error) {
      boxes.update(box, timesOf<R>(expiresAt, endsBy, stateChangedAt));
      throw error;
    }
    box.memory = { ...newMemory(request, clock.now()), toldEnd: box.memory.toldEnd };
    boxes.setState(box, "running", "woken");
    await runtime.extended?.(box);
  };

  return {
    ...createCreation(parts),
    sleep: (id, reason = "requested", isDue = always) =>
      inTurn(id, async (box) => {
        if (box.record.state === "sleeping") return;
        expectState(box, ["running"], "put to sleep");
        if (!(await isDue())) return;
        if (await runtime.sleep(box, isDue)) boxes.setState(box, "sleeping", reason);
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
        const { expiresAt, endsBy, stateChangedAt } = box.record;
        const wanted = Math.min(Math.max(expiresAt, clock.now() + forMs), endsBy);
        boxes.update(box, timesOf<R>(wanted, endsBy, stateChangedAt));
        await runtime.extended?.(box);
        return { expiresAt: box.record.expiresAt };
      }),
    end: (id, reason, isDue = always) =>
      inTurn(id, async (box) => {
        if (isUp(box) && (await isDue())) await endNow(box, reason);
      }),
    died: (box) =>
      boxes.exclusive(box, async () => {
        // The connection to pid 1 closes before the last of its processes is gone.
        if (!isUp(box) || !(await runtime.isGone(box))) return;
        await endNow(box, (await runtime.whyGone(box)) ?? "killed", lostNow);
      }),
  };
}

/** The compiler does not know that a part of every record is a part of this one. */
function timesOf<R extends SandboxRecord>(expiresAt: number, endsBy: number, stateChangedAt: number): Partial<R> {
  return { expiresAt, endsBy, stateChangedAt } as Partial<R>;
}

function isUp({ record }: Box): boolean {
  return record.state === "running" || record.state === "sleeping";
}

function expectState({ id, record: { state, reason } }: Box, states: readonly string[], verb: string): void {
  if (states.includes(state)) return;
  const code = liveStates.includes(state) ? "sandbox_wrong_state" : "sandbox_not_running";
  throw new SlipwayError(code, `Cannot ${verb} ${id}: it is ${state} (${reason}), not ${states.join(" or ")}.`);
}
