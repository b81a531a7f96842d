import type { SandboxId } from "@slipway/contract";
import type { ReconcileReport } from "../provider.ts";
import type { Box, Boxes } from "./boxes/boxes.ts";
import type { Lifecycle } from "./boxes/lifecycle.ts";
import type { EventLog } from "./events/log.ts";
import { liveStates, type SandboxRecord } from "./record.ts";
import type { Runtime } from "./runtime.ts";

export interface ReconcileParts<R extends SandboxRecord, O, P> {
  readonly boxes: Boxes<R>;
  readonly events: EventLog;
  readonly runtime: Pick<
    Runtime<R, O, P>,
    | "survey"
    | "isUp"
    | "repair"
    | "adopt"
    | "end"
    | "endFound"
    | "ended"
    | "whyGone"
    | "sandboxesWithFiles"
    | "removeFiles"
  >;
  readonly lifecycle: Pick<Lifecycle<R>, "died">;
  collectGarbage(): Promise<number>;
  log(line: string): void;
  onError(box: Box<R>, error: unknown): void;
}

/**
 * Makes what runs agree with what is recorded. `starting`: a new keeper takes over what the last one left, which may
 * have been killed at any point. A failure with one sandbox does not stop the others.
 */
export async function reconcile<R extends SandboxRecord, O, P>(
  parts: ReconcileParts<R, O, P>,
  { starting }: { starting: boolean },
): Promise<ReconcileReport> {
  const { boxes, runtime, onError } = parts;
  const running = await runtime.survey();
  const adopted: SandboxId[] = [];
  const lost: SandboxId[] = [];
  const ended: string[] = [];

  for (const box of [...boxes.all()]) {
    try {
      const found = await (starting ? takeOver : lookAfter)(parts, box, running.get(box.id));
      if (found === "adopted") adopted.push(box.id);
      if (found === "lost") lost.push(box.id);
    } catch (error) {
      onError(box, error);
    }
  }
  for (const [id, found] of running) if (await endStray(parts, id, found)) ended.push(id);
  for (const id of runtime.sandboxesWithFiles()) await removeStray(parts, id);
  return { adopted, lost, ended, layersRemoved: await parts.collectGarbage() };
}

type Found = "adopted" | "lost" | "as recorded";

/** For a sandbox of this keeper. It may be newer than the survey. */
async function lookAfter<R extends SandboxRecord, O, P>(
  { lifecycle, runtime }: ReconcileParts<R, O, P>,
  box: Box<R>,
  found: P | undefined,
): Promise<Found> {
  const { state } = box.record;
  if ((state !== "running" && state !== "sleeping") || runtime.isUp(box, found)) return "as recorded";
  await lifecycle.died(box);
  return "lost";
}

async function takeOver<R extends SandboxRecord, O, P>(
  parts: ReconcileParts<R, O, P>,
  box: Box<R>,
  found: P | undefined,
): Promise<Found> {
  parts.runtime.repair?.(box);
  if (liveStates.includes(box.record.state)) return (await adopt(parts, box, found)) ? "adopted" : "lost";
  // A crash cut a stop short.
  if (found !== undefined) await parts.runtime.endFound(found);
  return "as recorded";
}

/** Ends what runs without a record, unless it was destroyed since the survey. */
async function endStray<R extends SandboxRecord, O, P>(
  { boxes, runtime, log }: ReconcileParts<R, O, P>,
  id: SandboxId,
  found: P,
): Promise<boolean> {
  if (boxes.find(id) !== undefined) return false;
  try {
    return await runtime.endFound(found);
  } catch (error) {
    log(`${id}: ${(error as Error).stack}`);
    return false;
  }
}

/** Finishes a destroy that was cut short after it removed the record. */
async function removeStray<R extends SandboxRecord, O, P>(
  { boxes, events, log, runtime }: ReconcileParts<R, O, P>,
  id: SandboxId,
): Promise<void> {
  if (boxes.find(id) !== undefined) return;
  try {
    await runtime.removeFiles(id);
    events.append({ type: "sandbox.destroyed", sandbox: id, reason: "requested" });
  } catch (error) {
    log(`${id}: ${(error as Error).stack}`);
  }
}

/** Whether the sandbox lives on. Its timers wait until then. */
function adopt<R extends SandboxRecord, O, P>(
  parts: ReconcileParts<R, O, P>,
  box: Box<R>,
  found: P | undefined,
): Promise<boolean> {
  const { boxes, events, runtime } = parts;
  return boxes.exclusive(box, async () => {
    const { state } = box.record;
    if (!(await runtime.adopt(box, found))) {
      if (found !== undefined) await runtime.endFound(found);
      await endedUnseen(parts, box);
      return false;
    }
    if (state === "creating") boxes.setState(box, "running", "started", { wasRunning: true } as Partial<R>);
    events.append({ type: "sandbox.adopted", sandbox: box.id });
    return true;
  });
}

async function endedUnseen<R extends SandboxRecord, O, P>(
  { boxes, runtime }: ReconcileParts<R, O, P>,
  box: Box<R>,
): Promise<void> {
  const reason = (await runtime.whyGone(box)) ?? "provider_lost";
  await runtime.end(box);
  if (box.record.wasRunning) return boxes.setState(box, "stopped", reason, runtime.ended);
  // The create never succeeded, so nothing of it stays.
  await runtime.removeFiles(box.id);
  boxes.forget(box, "start_failed");
}
