import { hasCode, SlipwayError } from "@slipway/contract";
import type { Box, Boxes } from "./boxes/boxes.ts";
import type { Lifecycle } from "./boxes/lifecycle.ts";
import type { Snapshots } from "./boxes/snapshots.ts";
import type { Clock } from "./clock.ts";
import { type Due, decideIdle, endOf, nextDue, type Use } from "./decide.ts";
import type { EventLog } from "./events/log.ts";
import type { SandboxRecord } from "./record.ts";

/** Does what is due for each sandbox: notices, ends, sleep, checkpoints. */
export interface Timers<R extends SandboxRecord = SandboxRecord> {
  /** Call after every change of a sandbox's record. */
  schedule(box: Box<R>): void;
  forget(box: Box<R>): void;
}

export interface TimerParts<R extends SandboxRecord> {
  readonly clock: Clock;
  readonly events: EventLog;
  readonly boxes: Pick<Boxes<R>, "update">;
  readonly lifecycle: Pick<Lifecycle, "end" | "sleep" | "stop" | "destroy">;
  readonly snapshots: Pick<Snapshots<unknown>, "checkpoint" | "create">;
  use(box: Box<R>): Promise<Use>;
  onError(box: Box<R>, error: unknown): void;
}

/** Delays the retry of what failed. */
const retryMs = 1000;

export function createTimers<R extends SandboxRecord>(parts: TimerParts<R>): Timers<R> {
  const { clock } = parts;
  const armed = new Map<Box<R>, () => void>();
  const forgotten = new WeakSet<Box<R>>();
  const arm = (box: Box<R>, delayMs: number, callback: () => void) => armed.set(box, clock.after(delayMs, callback));
  const disarm = (box: Box<R>) => {
    armed.get(box)?.();
    armed.delete(box);
  };
  const schedule = (box: Box<R>) => {
    disarm(box);
    const due = nextDue(box.record, box.memory);
    if (due === null) return;
    arm(box, due.at - clock.now(), async () => {
      armed.delete(box);
      if (due.at > clock.now()) return schedule(box);
      const delayMs = await perform(parts, box, due).then(
        () => 0,
        (error: unknown) => {
          // Destroyed, or changed its state, between the timer and its turn.
          if (!hasCode(error, "sandbox_not_found") && !hasCode(error, "sandbox_wrong_state")) parts.onError(box, error);
          return retryMs;
        },
      );
      // A change of its record has armed it again already.
      if (!armed.has(box) && !forgotten.has(box)) arm(box, delayMs, () => schedule(box));
    });
  };
  return {
    schedule,
    forget(box) {
      forgotten.add(box);
      disarm(box);
    },
  };
}

async function perform<R extends SandboxRecord>(parts: TimerParts<R>, box: Box<R>, due: Due): Promise<void> {
  const { clock, lifecycle, snapshots, events } = parts;
  const { state } = box.record;
  /** Asked in the sandbox's turn: a wake or a keep-alive may have come first. */
  const isOver = async () => box.record.state === state && endOf(box.record) <= clock.now();
  switch (due.action) {
    case "expiring": {
      const expiresAt = endOf(box.record);
      box.memory = { ...box.memory, toldEnd: expiresAt };
      const reason = box.record.state === "sleeping" ? "slept_out" : "expired";
      events.append({ type: "sandbox.expiring", sandbox: box.id, expiresAt, reason });
      return;
    }
    case "expire":
      return lifecycle.end(box.id, "expired", isOver);
    case "check_idle":
      return checkIdle(parts, box);
    case "checkpoint":
      box.memory = { ...box.memory, lastCheckpointAt: clock.now() };
      return snapshots.checkpoint(box.id);
    case "sleep_out":
      return lifecycle.stop(box.id, "slept_out", isOver);
    case "keep_slept_out":
      return keepSleptOut(parts, box);
  }
}

/** Repeatable after a crash: the record holds the snapshot's id. */
async function keepSleptOut<R extends SandboxRecord>(
  { boxes, lifecycle, snapshots }: TimerParts<R>,
  box: Box<R>,
): Promise<void> {
  const { owedSnapshot, request } = box.record;
  if (owedSnapshot === null) return;
  await snapshots.create({ id: box.id, snapshot: owedSnapshot, name: "slept-out", expiresInMs: null });
  if (request.onEnd === "destroy") await lifecycle.destroy(box.id, "slept_out");
  else boxes.update(box, { owedSnapshot: null } as Partial<R>);
}

async function checkIdle<R extends SandboxRecord>(
  { clock, use, lifecycle }: TimerParts<R>,
  box: Box<R>,
): Promise<void> {
  const { idleMs } = box.record.request;
  if (idleMs === null) throw new SlipwayError("internal", "Idle check of a sandbox that never sleeps.");
  const decision = decideIdle(await use(box), idleMs, clock.now());
  box.memory = { ...box.memory, checkIdleAt: decision.sleep ? clock.now() + idleMs : decision.checkAt };
  // Asked again in its turn, for which it may have waited.
  const isIdle = async () => decideIdle(await use(box), idleMs, clock.now()).sleep;
  if (decision.sleep) await lifecycle.sleep(box.id, "idle", isIdle);
}
