import { join } from "node:path";
import { detectCgroups } from "../cgroup.ts";
import { hostRegistries } from "../host-registries.ts";
import { createLaunchpad } from "../launchpad.ts";
import { createLayerTool } from "../layer-tool.ts";
import { layoutOf, prepareStateDirectory } from "../layout.ts";
import { type LayerId, liveStates } from "../record.ts";
import { hostMasks } from "../skeleton.ts";
import { createAgentLink } from "./agent-link.ts";
import { type Box, openBoxes } from "./boxes.ts";
import type { Clock } from "./clock.ts";
import { openCertificateAuthority } from "./egress/authority.ts";
import { openEventLog } from "./event-log.ts";
import { createHold } from "./hold.ts";
import { openImages } from "./images.ts";
import { openLayers } from "./layers.ts";
import { createLifecycle } from "./lifecycle.ts";
import { createNetworks } from "./networks.ts";
import { createPreviews } from "./previews.ts";
import { installPrograms } from "./programs.ts";
import { protocolVersion } from "./protocol.ts";
import { reconcile } from "./reconcile.ts";
import { createRuntime } from "./runtime.ts";
import { serveKeeper } from "./server.ts";
import type { KeeperSettings } from "./settings.ts";
import { openSnapshots } from "./snapshots.ts";
import { createTimers } from "./timers.ts";
import { startWatch } from "./watch.ts";

export interface Keeper {
  close(): void;
  readonly closed: Promise<void>;
}

/** How long a keeper without sandboxes and callers stays. */
const lingerMs = 2000;
const reconcileEveryMs = 5 * 60_000;

/** Wires the keeper, takes over what the last one left, and serves. The caller holds the state directory's lock. */
export async function startKeeper(
  settings: KeeperSettings,
  clock: Clock,
  log: (line: string) => void,
): Promise<Keeper> {
  const layout = layoutOf(settings.stateDir);
  prepareStateDirectory(layout, settings.sandboxUid);
  const identity = process.getuid?.() === 0 ? { uid: settings.sandboxUid, gid: settings.sandboxUid } : null;
  const programs = installPrograms(layout);
  const layerTool = createLayerTool({ program: programs.launch, identity });
  const removeTree = (path: string) => layerTool.remove(path);
  const onError = (box: Box, error: unknown) => log(`${box.id}: ${(error as Error).stack}`);

  const [authority, cgroups, masks, registries] = await Promise.all([
    openCertificateAuthority({ file: join(layout.root, "egress-authority.pem") }),
    detectCgroups().then((places) => places.prepare()),
    hostMasks(),
    hostRegistries({
      home: settings.environment["HOME"] ?? "/",
      environment: settings.environment,
      cacheFile: join(layout.root, "registries.json"),
    }),
  ]);
  const events = openEventLog(layout.events, () => clock.now());
  const layers = openLayers(layout.layers, identity?.uid ?? null, removeTree);
  const boxes = openBoxes(layout, events, clock, (box) => timers.schedule(box));
  const agent = createAgentLink(layout);
  const hold = createHold(agent, cgroups.mechanisms.freeze !== "none");
  const networks = createNetworks({ layout, events, authority, registries: registries.hosts, onError });
  const images = await openImages({ layout, identity, registries });
  const launchpad = createLaunchpad({ program: programs.launch, identity, cgroups });
  const runtime = createRuntime({
    ...{ layout, boxes, launchpad, agent, hold, networks, programs, masks },
    limitsMemory: cgroups.mechanisms.memory !== "none",
    onDeath: (box) => lifecycle.died(box).catch((error) => onError(box, error)),
  });

  let collecting: Promise<number> = Promise.resolve(0);
  const collectGarbage = () => {
    collecting = collecting.catch(() => 0).then(() => layers.collect(new Set(usedLayers())));
    return collecting;
  };
  const collectSoon = () => {
    collectGarbage().catch((error) => log(`garbage: ${error.stack}`));
  };
  const snapshots = openSnapshots({
    layout,
    boxes,
    layers,
    layerTool,
    hold,
    events,
    clock,
    collectGarbage: collectSoon,
  });
  const lifecycle = createLifecycle({
    ...{ layout, boxes, clock, runtime, hold, removeTree, collectGarbage: collectSoon },
    layersOf: (box) => snapshots.capture(box),
    async origin(request, signal) {
      if (request.snapshot !== undefined) {
        const { root, lowers } = snapshots.find(request.snapshot);
        return { image: root, lowers };
      }
      const image = await images.resolve(request.image, { signal });
      return { image, lowers: image.layers };
    },
  });
  const timers = createTimers({ clock, events, lifecycle, snapshots, use: (box) => agent.use(box), onError });
  const previews = createPreviews({ layout, boxes, lifecycle });
  function* usedLayers(): Iterable<LayerId> {
    yield* images.usedLayers();
    yield* snapshots.usedLayers();
    for (const { record } of boxes.all()) {
      yield* record.lowers;
      if (record.incremental !== null) yield record.incremental;
    }
  }

  const reconcileParts = { layout, boxes, events, layers, hold, runtime, lifecycle, removeTree, collectGarbage };
  await layers.collect(new Set(usedLayers()), { growing: true });
  await reconcile(reconcileParts, { starting: true });
  snapshots.deleteExpired();
  for (const box of boxes.all()) {
    timers.schedule(box);
    await previews.restore(box);
  }

  const { promise: closed, resolve: setClosed } = Promise.withResolvers<void>();
  const close = () => {
    watch[Symbol.dispose]();
    cancelReconcile();
    void server.close();
    launchpad[Symbol.asyncDispose]().then(setClosed, setClosed);
  };
  const closeWhenIdle = () => {
    clock.after(lingerMs, () => {
      const needed = server.connections > 0 || [...boxes.all()].some(({ record }) => liveStates.includes(record.state));
      if (!needed) close();
    });
  };
  const server = await serveKeeper(
    layout.keeperSocket,
    {
      hello: () => ({ version: protocolVersion, pid: process.pid }),
      retire: () => {
        clock.after(0, close);
        return null;
      },
      create: ({ id, request }, { signal }) => lifecycle.create(id, request, signal),
      fork: ({ id, from, request }, { signal }) => lifecycle.fork(id, from, request, signal),
      sleep: ({ id }) => done(lifecycle.sleep(id)),
      wake: ({ id }) => done(lifecycle.wake(id)),
      stop: ({ id }) => done(lifecycle.stop(id)),
      start: ({ id }, { signal }) => done(lifecycle.start(id, signal)),
      destroy: ({ id }) => lifecycle.destroy(id),
      keepAlive: ({ id, forMs }) => lifecycle.keepAlive(id, forMs),
      setNetwork: ({ id, network }) => {
        const box = boxes.get(id);
        boxes.update(box, { request: { ...box.record.request, network } });
        return done(networks.setPolicy(box));
      },
      preview: ({ id, port }) => previews.url(boxes.get(id), port),
      snapshot: ({ id, snapshot, name, expiresInMs }) => snapshots.create(id, snapshot, { name, expiresInMs }),
      updateSnapshot: ({ id, ...change }) => snapshots.update(id, change),
      deleteSnapshot: ({ id }) => {
        snapshots.delete(id);
        return null;
      },
      prepareImage: ({ image }, { signal, progress }) => done(images.resolve(image as never, { signal, progress })),
      reconcile: () => {
        snapshots.deleteExpired();
        return reconcile(reconcileParts, { starting: false });
      },
    },
    events,
    { onIdle: closeWhenIdle, onDefect: (method, error) => log(`${method}: ${(error as Error).stack}`) },
  );
  const watch = startWatch({ layout, boxes, hold, layerTool, lifecycle, events, clock, onError });
  let cancelReconcile = () => {};
  const reconcileLater = () => {
    cancelReconcile = clock.after(reconcileEveryMs, () => {
      snapshots.deleteExpired();
      reconcile(reconcileParts, { starting: false })
        .catch((error) => log(`reconcile: ${error.stack}`))
        .finally(reconcileLater);
    });
  };
  reconcileLater();
  closeWhenIdle();
  return { close, closed };
}

async function done(work: Promise<unknown>): Promise<null> {
  await work;
  return null;
}
