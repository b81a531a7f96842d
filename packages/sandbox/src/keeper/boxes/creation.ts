import { isDeepStrictEqual } from "node:util";
import { hasCode, type SandboxInfo, SlipwayError } from "@slipway/contract";
import type { Clock } from "../clock.ts";
import type { KeeperParams } from "../protocol.ts";
import { newRecord, type SandboxRecord, sandboxInfo } from "../record.ts";
import type { Runtime } from "../runtime.ts";
import type { Box, Boxes } from "./boxes.ts";
import type { Snapshots } from "./snapshots.ts";

export interface Creation {
  create(wanted: KeeperParams<"create">, signal: AbortSignal): Promise<SandboxInfo>;
  /** A fork without tools of its own gets those of its source. */
  fork(wanted: KeeperParams<"fork">, signal: AbortSignal): Promise<SandboxInfo>;
}

export interface CreationParts<R extends SandboxRecord, O, P> {
  /** The provider's name. */
  readonly provider: string;
  readonly boxes: Boxes<R>;
  readonly clock: Clock;
  readonly runtime: Runtime<R, O, P>;
  readonly snapshots: Pick<Snapshots<O>, "find">;
  onError(box: Box<R>, error: unknown): void;
}

export function createCreation<R extends SandboxRecord, O, P>(parts: CreationParts<R, O, P>): Creation {
  const { boxes, clock, runtime, provider } = parts;
  const keys = new Map<string, { request: SandboxRecord["request"]; created: Promise<SandboxInfo> }>();

  const launchNew = (wanted: KeeperParams<"create">, origin: O, signal: AbortSignal): Promise<SandboxInfo> => {
    const launch = runtime.reserve(wanted.id);
    const record = runtime.recordOf(newRecord(wanted, clock.now(), runtime.longestLifeMs), origin);
    const box = boxes.add({ ...record, ...launch.recorded });
    return boxes.exclusive(box, async () => {
      try {
        await launch.start(box, signal);
        boxes.setState(box, "running", "started", { wasRunning: true } as Partial<R>);
        return sandboxInfo(box.record, provider);
      } catch (error) {
        // Reconciling removes what cannot be removed now: it has no record.
        await discard(box).catch((cause) => parts.onError(box, cause));
        boxes.forget(box, "start_failed");
        throw error;
      }
    });
  };

  const discard = async (box: Box<R>) => {
    await runtime.end(box);
    await runtime.removeFiles(box.id);
  };

  const settledInfo = (box: Box<R>) => box.queue.then(() => sandboxInfo(boxes.get(box.id).record, provider));

  const createOnce = async (wanted: KeeperParams<"create">, signal: AbortSignal): Promise<SandboxInfo> => {
    runtime.requireRoom();
    const { request } = wanted;
    const origin =
      request.snapshot === undefined
        ? await runtime.originOf(request, signal)
        : (parts.snapshots.find(request.snapshot) as O);
    return launchNew(wanted, origin, signal);
  };

  /** A key names one create for as long as its sandbox lives; a failed create frees it. */
  const createByKey = (key: string, wanted: KeeperParams<"create">, signal: AbortSignal): Promise<SandboxInfo> => {
    const { request } = wanted;
    const recorded = [...boxes.all()].find((box) => box.record.request.idempotencyKey === key);
    const earlier = keys.get(key) ?? (recorded && { request: recorded.record.request, created: settledInfo(recorded) });
    if (earlier !== undefined) {
      if (!isDeepStrictEqual(earlier.request, request))
        throw new SlipwayError("idempotency_conflict", `The idempotency key ${key} belongs to a different create.`);
      return earlier.created.catch((error: unknown) => {
        // Destroyed meanwhile, or aborted by its own caller.
        const isFree = hasCode(error, "sandbox_not_found") || hasCode(error, "aborted");
        if (isFree && !signal.aborted) return createByKey(key, wanted, signal);
        throw error;
      });
    }
    const created = createOnce(wanted, signal).finally(() => keys.delete(key));
    keys.set(key, { request, created });
    return created;
  };

  return {
    create(wanted, signal) {
      const existing = boxes.find(wanted.id);
      if (existing !== undefined) return settledInfo(existing);
      const { idempotencyKey } = wanted.request;
      return idempotencyKey === undefined ? createOnce(wanted, signal) : createByKey(idempotencyKey, wanted, signal);
    },
    async fork({ id, from, request, tools }, signal) {
      const existing = boxes.find(id);
      if (existing !== undefined) return settledInfo(existing);
      const source = boxes.get(from);
      runtime.requireRoom();
      using files = await boxes.exclusive(source, () => runtime.capture(source, signal));
      return await launchNew({ id, request, tools: tools ?? source.record.tools }, files.origin, signal);
    },
  };
}
