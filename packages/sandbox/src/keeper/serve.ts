import type { SandboxInfo } from "@slipway/contract";
import type { ReconcileReport } from "../provider.ts";
import type { Box, Boxes } from "./boxes/boxes.ts";
import type { Lifecycle } from "./boxes/lifecycle.ts";
import type { Snapshots } from "./boxes/snapshots.ts";
import { type Clock, repeat } from "./clock.ts";
import type { EventLog } from "./events/log.ts";
import type { KeeperLayout } from "./layout.ts";
import { type KeeperParams, protocolVersion } from "./protocol.ts";
import { type ReconcileParts, reconcile } from "./reconcile.ts";
import { liveStates, type SandboxRecord } from "./record.ts";
import { type CallContext, type Handlers, serveKeeper } from "./server.ts";
import type { Timers } from "./timers.ts";
import { collectTools } from "./tools/collect.ts";

export interface Keeper {
  close(): void;
  readonly closed: Promise<void>;
}

/** A provider's keeper, wired. It has not taken over the state directory yet. */
export interface KeeperParts<R extends SandboxRecord, O, P> extends ReconcileParts<R, O, P> {
  readonly layout: KeeperLayout;
  readonly clock: Clock;
  readonly events: EventLog;
  readonly boxes: Boxes<R>;
  readonly lifecycle: Lifecycle<R>;
  readonly snapshots: Snapshots<O>;
  readonly timers: Timers<R>;
  /** Builds and caches an image ahead of the first create that names it. The key of what it built; null: it was there. */
  prepareImage(image: KeeperParams<"prepareImage">["image"], context: CallContext): Promise<string | null>;
  /** Forgets what `prepareImage` has built. */
  removeImage(key: string): Promise<void> | void;
  /** Applies the policy of the sandbox's record. */
  setPolicy(box: Box<R>): Promise<void>;
  previewUrl(box: Box<R>, port: number): Promise<string>;
  /** What the provider does beside, from the take-over on. */
  watch(): Disposable[];
  /** Before the records are compared with what runs. */
  beforeTakeOver?(): Promise<void>;
  /** Once what runs is known. */
  takeOver?(): Promise<void>;
  letGo(): Promise<void>;
}

/** How long a keeper stays without live sandboxes and callers. */
const lingerMs = 2000;
const reconcileEveryMs = 5 * 60_000;

/** Lets the keeper's hooks ask whether it is still needed, before it serves. */
export interface Lingering {
  leaveSoon(): void;
}

/** Takes over what the last keeper left and serves until nobody needs it. The caller holds the state directory's lock. */
export async function startServing<R extends SandboxRecord, O, P>(
  parts: KeeperParts<R, O, P>,
  lingering: Lingering,
): Promise<Keeper> {
  const { boxes, clock, log } = parts;
  await takeOver(parts);
  const { promise: closed, resolve: setClosed } = Promise.withResolvers<void>();
  const close = () => {
    for (const work of watches) work[Symbol.dispose]();
    void server.close();
    parts.letGo().then(setClosed, setClosed);
  };
  const isNeeded = () =>
    server.connections > 0 || [...boxes.all()].some(({ record }) => liveStates.includes(record.state));
  let cancelLeave = () => {};
  lingering.leaveSoon = () => {
    cancelLeave();
    if (!isNeeded()) cancelLeave = clock.after(lingerMs, () => isNeeded() || close());
  };
  const server = await serveKeeper(parts.layout.keeperSocket, handlersOf(parts, close), parts.events, {
    onIdle: () => lingering.leaveSoon(),
    onDefect: (method, error) => log(`${method}: ${(error as Error).stack}`),
  });
  const reconciling = repeat(
    clock,
    () => reconcileEveryMs,
    () => reconcileNow(parts).catch((error) => log(`reconcile: ${error.stack}`)),
  );
  const watches = [...parts.watch(), reconciling];
  lingering.leaveSoon();
  return { close, closed };
}

/** A failure with one sandbox does not stop the others. */
async function takeOver<R extends SandboxRecord, O, P>(parts: KeeperParts<R, O, P>): Promise<void> {
  await parts.beforeTakeOver?.();
  await reconcile(parts, { starting: true });
  await removeTools(parts);
  await parts.takeOver?.();
  parts.snapshots.deleteExpired();
  for (const box of parts.boxes.all()) parts.timers.schedule(box);
}

async function reconcileNow<R extends SandboxRecord, O, P>(parts: KeeperParts<R, O, P>): Promise<ReconcileReport> {
  parts.snapshots.deleteExpired();
  await removeTools(parts);
  return await reconcile(parts, { starting: false });
}

async function removeTools<R extends SandboxRecord, O, P>(parts: KeeperParts<R, O, P>): Promise<void> {
  const { layout, boxes, clock, log } = parts;
  const recorded = new Set([...boxes.all()].flatMap(({ record }) => record.tools.map(({ digest }) => digest)));
  await collectTools(layout.tools, recorded, clock.now()).catch((error) => log(`garbage: ${error.stack}`));
}

function handlersOf<R extends SandboxRecord, O, P>(parts: KeeperParts<R, O, P>, close: () => void): Handlers {
  const { boxes, clock, lifecycle, snapshots } = parts;
  return {
    hello: () => ({ version: protocolVersion, pid: process.pid }),
    retire: () => {
      clock.after(0, close);
      return null;
    },
    create: (params, { signal }): Promise<SandboxInfo> => lifecycle.create(params, signal),
    fork: (params, { signal }) => lifecycle.fork(params, signal),
    sleep: ({ id }) => done(lifecycle.sleep(id)),
    wake: ({ id }) => done(lifecycle.wake(id)),
    stop: ({ id }) => done(lifecycle.stop(id)),
    start: ({ id }, { signal }) => done(lifecycle.start(id, signal)),
    destroy: ({ id }) => lifecycle.destroy(id),
    keepAlive: ({ id, forMs }) => lifecycle.keepAlive(id, forMs),
    setNetwork: ({ id, network }) => {
      const box = boxes.get(id);
      boxes.update(box, { network } as Partial<R>);
      return done(parts.setPolicy(box));
    },
    preview: ({ id, port }) => parts.previewUrl(boxes.get(id), port),
    snapshot: (params, { signal }) => snapshots.create(params, signal),
    updateSnapshot: (params) => snapshots.update(params),
    deleteSnapshot: ({ id }) => {
      snapshots.delete(id);
      return null;
    },
    prepareImage: async ({ image }, context) => ({ built: await parts.prepareImage(image, context) }),
    removeImage: async ({ key }) => {
      await parts.removeImage(key);
      return null;
    },
    reconcile: () => reconcileNow(parts),
  };
}

async function done(work: Promise<unknown>): Promise<null> {
  await work;
  return null;
}
