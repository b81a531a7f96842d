import { readdirSync } from "node:fs";
import { join } from "node:path";
import { hostRegistries, hostsOf } from "../../../host-registries.ts";
import { openBoxes } from "../../../keeper/boxes/boxes.ts";
import { createLifecycle } from "../../../keeper/boxes/lifecycle.ts";
import { openSnapshots } from "../../../keeper/boxes/snapshots.ts";
import type { Clock } from "../../../keeper/clock.ts";
import { openEventLog } from "../../../keeper/events/log.ts";
import { createTimers } from "../../../keeper/timers.ts";
import { readDebianSources } from "../launch/debian-sources.ts";
import { startLaunchService } from "../launch/launch-service.ts";
import { createLaunchpad } from "../launch/launchpad.ts";
import { createLayerTool } from "../launch/layer-tool.ts";
import { hostMasks } from "../launch/skeleton.ts";
import { layoutOf, prepareStateDirectory } from "../layout.ts";
import { baseName } from "../limits/base.ts";
import { detectCgroups } from "../limits/cgroup.ts";
import type { LayerId, SandboxRecord } from "../record.ts";
import { createAgentLink } from "./boxes/agent-link.ts";
import type { Box } from "./boxes/boxes.ts";
import { createHold } from "./boxes/hold.ts";
import { openLayers } from "./boxes/layers.ts";
import { createNetworks } from "./boxes/networks.ts";
import { createPreviews } from "./boxes/previews.ts";
import { installPrograms } from "./boxes/programs.ts";
import { createRuntime } from "./boxes/runtime.ts";
import { openCertificateAuthority } from "./egress/authority.ts";
import { createImageBuilder } from "./images/build.ts";
import { openImages } from "./images/images.ts";
import type { KeeperSettings } from "./settings.ts";
import { openSpace } from "./watch/space.ts";

/** The keeper's parts, wired. It has not taken over the state directory yet. */
export type KeeperParts = Awaited<ReturnType<typeof composeKeeper>>;

export interface KeeperHooks {
  log(line: string): void;
  /** A sandbox has changed or is gone. */
  onChange(): void;
}

export async function composeKeeper(settings: KeeperSettings, clock: Clock, { log, onChange }: KeeperHooks) {
  const layout = layoutOf(settings.stateDir);
  prepareStateDirectory(layout, settings.sandboxUid);
  const identity = process.getuid?.() === 0 ? { uid: settings.sandboxUid, gid: settings.sandboxUid } : null;
  const space = openSpace(layout.root, settings.minFreeBytes);
  const programs = installPrograms(layout);
  const service = await startLaunchService({
    program: programs.launch,
    socketPath: layout.launchSocket,
    onRestart: (pid) => cgroups.hold(pid),
  });
  const layerTool = createLayerTool(service, identity);
  const removeTree = (path: string) => layerTool.remove(path);
  const onError = (box: Box, error: unknown) => log(`${box.id}: ${(error as Error).stack}`);

  const [authority, cgroups, masks, registries, debian] = await Promise.all([
    openCertificateAuthority({ file: join(layout.root, "egress-authority.pem") }),
    detectCgroups().then((places) => places.prepare(baseName(settings.stateDir), service.pid)),
    hostMasks(),
    hostRegistries({
      home: settings.environment["HOME"] ?? "/",
      environment: settings.environment,
      cacheFile: join(layout.root, "registries.json"),
    }),
    readDebianSources(),
  ]);
  const events = openEventLog(layout.events, () => clock.now());
  const layers = openLayers(layout.layers, identity?.uid ?? null, removeTree);
  const boxes = openBoxes<SandboxRecord>(layout, events, clock, {
    onChange(box) {
      timers.schedule(box);
      onChange();
    },
    onForget(box) {
      timers.forget(box);
      previews.forget(box.id).catch((error) => onError(box, error));
      onChange();
    },
  });
  const agent = createAgentLink(layout, clock);
  const hold = createHold(agent, cgroups.mechanisms.freeze !== "none");
  const registryHosts = [...new Set([...registries.hosts, ...hostsOf(debian.archives)])];
  const networks = createNetworks({ layout, events, authority, registries: registryHosts, onError });
  // Before a launcher stands by: no record names its groups.
  await cgroups.sweep(new Set([...boxes.all()].flatMap(({ record }) => record.cgroups)));
  for (const spare of readdirSync(layout.spares)) await removeTree(join(layout.spares, spare));
  const launchpad = createLaunchpad({ service, identity, cgroups, spares: layout.spares });
  let collecting: Promise<number> = Promise.resolve(0);
  const collectGarbage = () => {
    collecting = collecting.catch(() => 0).then(() => layers.collect(new Set(usedLayers())));
    return collecting;
  };
  const collectSoon = () => {
    collectGarbage().catch((error) => log(`garbage: ${error.stack}`));
  };
  const runtime = createRuntime({
    layout,
    boxes,
    launchpad,
    agent,
    hold,
    networks,
    programs,
    masks,
    layers,
    layerTool,
    space,
    removeTree,
    limitsMemory: cgroups.mechanisms.memory !== "none",
    // An image is for sandboxes of every user: its build gives all files to one.
    hasSecondUser: (request) =>
      identity !== null && request.user === "root" && imageBuilder.baseOf(request) === undefined,
    onDeath: (box) => lifecycle.died(box).catch((error) => onError(box, error)),
    async originOf(request, signal) {
      const root = imageBuilder.baseOf(request) ?? (await images.resolve(request.image, { signal }));
      return { root, lowers: root.layers };
    },
  });
  const capture = runtime.capture;
  const snapshots = openSnapshots({ layout, boxes, events, clock, capture, collectGarbage: collectSoon });
  const lifecycle = createLifecycle({
    provider: "local",
    boxes,
    clock,
    runtime,
    snapshots,
    onError,
    collectGarbage: collectSoon,
  });
  const imageBuilder = createImageBuilder({ layout, boxes, layers, lifecycle, capture });
  const images = await openImages({
    layout,
    layers,
    identity,
    clock,
    registries,
    debian,
    builder: imageBuilder,
    egressCa: authority.caCertificatePem,
  });
  const timers = createTimers({ clock, events, boxes, lifecycle, snapshots, use: (box) => agent.use(box), onError });
  const previews = createPreviews({ layout, boxes, lifecycle });
  function* usedLayers(): Iterable<LayerId> {
    yield* images.usedLayers();
    for (const { lowers } of snapshots.all()) yield* lowers;
    for (const { record } of boxes.all()) {
      yield* record.lowers;
      if (record.incremental !== null) yield record.incremental;
    }
  }

  return {
    layout,
    space,
    clock,
    events,
    boxes,
    agent,
    cgroups,
    layers,
    layerTool,
    hold,
    networks,
    images,
    service,
    launchpad,
    runtime,
    imageBuilder,
    snapshots,
    lifecycle,
    timers,
    previews,
    removeTree,
    collectGarbage,
    usedLayers,
    log,
    onError,
  };
}
