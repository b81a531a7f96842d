import type { ReconcileReport } from "../../../provider.ts";
import { liveStates } from "../record.ts";
import type { Box } from "./boxes/boxes.ts";
import { type Clock, repeat } from "./clock.ts";
import { composeKeeper, type KeeperParts } from "./compose.ts";
import { protocolVersion } from "./protocol.ts";
import { reconcile } from "./reconcile.ts";
import { type Handlers, serveKeeper } from "./server.ts";
import type { KeeperSettings } from "./settings.ts";
import { collectTools } from "./tools.ts";
import { startFloorWatch } from "./watch/floor.ts";
import { startHearing } from "./watch/hearing.ts";
import { writtenBytes } from "./watch/unlinked.ts";
import { startWatch, takenBytes } from "./watch/watch.ts";

export interface Keeper {
  close(): void;
  readonly closed: Promise<void>;
}

/** How long a keeper stays without live sandboxes and callers. */
const lingerMs = 2000;
const reconcileEveryMs = 5 * 60_000;

/** Takes over what the last keeper left and serves until nobody needs it. The caller holds the state directory's lock. */
export async function startKeeper(
  settings: KeeperSettings,
  clock: Clock,
  log: (line: string) => void,
): Promise<Keeper> {
  let leaveSoon = () => {};
  const parts = await composeKeeper(settings, clock, { log, onChange: () => leaveSoon() });
  await takeOver(parts);
  parts.cgroups.removeAbandoned().catch((error) => log(`control groups: ${error.stack}`));

  const { promise: closed, resolve: setClosed } = Promise.withResolvers<void>();
  const close = () => {
    for (const work of [watch, hearing, floor, reconciling]) work[Symbol.dispose]();
    void server.close();
    letGo(parts).then(setClosed, setClosed);
  };
  const isNeeded = () =>
    server.connections > 0 || [...parts.boxes.all()].some(({ record }) => liveStates.includes(record.state));
  let cancelLeave = () => {};
  leaveSoon = () => {
    cancelLeave();
    if (!isNeeded()) cancelLeave = clock.after(lingerMs, () => isNeeded() || close());
  };
  const server = await serveKeeper(parts.layout.keeperSocket, handlersOf(parts, close), parts.events, {
    onIdle: leaveSoon,
    onDefect: (method, error) => log(`${method}: ${(error as Error).stack}`),
  });
  const watch = startWatch(parts);
  const hearing = startHearing(parts);
  const writtenBy = async (box: Box) => writtenBytes(await parts.hold.processes(box));
  const floor = startFloorWatch({ ...parts, writtenBytes: writtenBy, takenBytes: (box) => takenBytes(parts, box) });
  const reconciling = repeat(
    clock,
    () => reconcileEveryMs,
    () => reconcileNow(parts).catch((error) => log(`reconcile: ${error.stack}`)),
  );
  leaveSoon();
  return { close, closed };
}

/** Removes unused layers before it ends the service that removes them. */
async function letGo({ cgroups, collectGarbage, launchpad, service }: KeeperParts): Promise<void> {
  await collectGarbage();
  await launchpad[Symbol.asyncDispose]();
  await service[Symbol.asyncDispose]();
  await cgroups.leave();
}

/** A failure with one sandbox or layer does not stop the others. */
async function takeOver(parts: KeeperParts): Promise<void> {
  const { boxes, layers, log, onError, previews, snapshots, timers, usedLayers } = parts;
  await layers.collect(new Set(usedLayers()), { growing: true }).catch((error) => log(`garbage: ${error.stack}`));
  await reconcile(parts, { starting: true });
  await removeTools(parts);
  await parts.imageBuilder.endOrphans().catch((error) => log(`image builds: ${error.stack}`));
  snapshots.deleteExpired();
  for (const box of boxes.all()) {
    await previews.restore(box).catch((error) => onError(box, error));
    timers.schedule(box);
  }
}

async function reconcileNow(parts: KeeperParts): Promise<ReconcileReport> {
  parts.snapshots.deleteExpired();
  await removeTools(parts);
  return await reconcile(parts, { starting: false });
}

async function removeTools({ layout, boxes, clock, log }: KeeperParts): Promise<void> {
  const recorded = new Set([...boxes.all()].flatMap(({ record }) => record.tools.map(({ digest }) => digest)));
  await collectTools(layout.tools, recorded, clock.now()).catch((error) => log(`garbage: ${error.stack}`));
}

function handlersOf(parts: KeeperParts, close: () => void): Handlers {
  const { boxes, clock, images, lifecycle, networks, previews, snapshots } = parts;
  return {
    hello: () => ({ version: protocolVersion, pid: process.pid }),
    retire: () => {
      clock.after(0, close);
      return null;
    },
    create: (params, { signal }) => lifecycle.create(params, signal),
    fork: (params, { signal }) => lifecycle.fork(params, signal),
    sleep: ({ id }) => done(lifecycle.sleep(id)),
    wake: ({ id }) => done(lifecycle.wake(id)),
    stop: ({ id }) => done(lifecycle.stop(id)),
    start: ({ id }, { signal }) => done(lifecycle.start(id, signal)),
    destroy: ({ id }) => lifecycle.destroy(id),
    keepAlive: ({ id, forMs }) => lifecycle.keepAlive(id, forMs),
    setNetwork: ({ id, network }) => {
      const box = boxes.get(id);
      boxes.update(box, { network });
      return done(networks.setPolicy(box));
    },
    preview: ({ id, port }) => previews.url(boxes.get(id), port),
    snapshot: (params, { signal }) => snapshots.create(params, signal),
    updateSnapshot: (params) => snapshots.update(params),
    deleteSnapshot: ({ id }) => {
      snapshots.delete(id);
      return null;
    },
    prepareImage: async ({ image }, { signal, progress }) => ({
      built: await images.prepare(image, { signal, progress }),
    }),
    removeImage: ({ key }) => {
      images.remove(key);
      return null;
    },
    reconcile: () => reconcileNow(parts),
  };
}

async function done(work: Promise<unknown>): Promise<null> {
  await work;
  return null;
}
