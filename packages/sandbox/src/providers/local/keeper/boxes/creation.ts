import { isDeepStrictEqual } from "node:util";
import { type CreateSandbox, hasCode, maxLifetimeMs, type SandboxInfo, SlipwayError } from "@slipway/contract";
import type { Layout } from "../../layout.ts";
import { type LayerId, type RootImage, type SandboxRecord, sandboxInfo } from "../../record.ts";
import type { Clock } from "../clock.ts";
import type { KeeperParams } from "../protocol.ts";
import type { Space } from "../watch/space.ts";
import type { Box, Boxes } from "./boxes.ts";
import type { Runtime } from "./runtime.ts";

export interface Creation {
  create(wanted: KeeperParams<"create">, signal: AbortSignal): Promise<SandboxInfo>;
  /** A fork without tools of its own gets those of its source. */
  fork(wanted: KeeperParams<"fork">, signal: AbortSignal): Promise<SandboxInfo>;
}

/** Where a sandbox's files come from. */
interface Origin {
  readonly image: RootImage;
  readonly lowers: readonly LayerId[];
}

export interface CreationParts {
  readonly layout: Layout;
  readonly boxes: Boxes;
  readonly space: Pick<Space, "require">;
  readonly clock: Clock;
  readonly runtime: Runtime;
  /** The layers of an image or a snapshot. Builds those that are missing. */
  origin(request: CreateSandbox, signal: AbortSignal): Promise<Origin>;
  /** Makes the sandbox's present files a stack of layers that a fork can start from. */
  layersOf(box: Box): Promise<{ lowers: readonly LayerId[] } & Disposable>;
  removeTree(path: string): Promise<void>;
  onError(box: Box, error: unknown): void;
}

export function createCreation(parts: CreationParts): Creation {
  const { boxes, clock, runtime, layout, space } = parts;
  const keys = new Map<string, { request: CreateSandbox; created: Promise<SandboxInfo> }>();

  const launchNew = (wanted: KeeperParams<"create">, origin: Origin, signal: AbortSignal): Promise<SandboxInfo> => {
    const reservation = runtime.reserve();
    const box = boxes.add(newRecord(wanted, origin, reservation.cgroups, clock.now()));
    return boxes.exclusive(box, async () => {
      try {
        await runtime.launch(box, reservation, signal);
        boxes.setState(box, "running", "started", { wasRunning: true });
        return sandboxInfo(box.record);
      } catch (error) {
        // Reconciling removes what cannot be removed now: it has no record.
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

  const createOnce = async (wanted: KeeperParams<"create">, signal: AbortSignal): Promise<SandboxInfo> => {
    space.require();
    return launchNew(wanted, await parts.origin(wanted.request, signal), signal);
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
      space.require();
      using files = await boxes.exclusive(source, () => parts.layersOf(source));
      const origin = { image: source.record.image, lowers: files.lowers };
      return await launchNew({ id, request, tools: tools ?? source.record.tools }, origin, signal);
    },
  };
}

function newRecord(
  { id, request, tools }: KeeperParams<"create">,
  { image, lowers }: Origin,
  cgroups: readonly string[],
  now: number,
): SandboxRecord {
  return {
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
}
