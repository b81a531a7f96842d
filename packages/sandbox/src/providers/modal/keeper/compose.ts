import { join } from "node:path";
import { SlipwayError } from "@slipway/contract";
import { hostRegistries } from "../../../host-registries.ts";
import { type Box, openBoxes } from "../../../keeper/boxes/boxes.ts";
import { createLifecycle } from "../../../keeper/boxes/lifecycle.ts";
import { openSnapshots } from "../../../keeper/boxes/snapshots.ts";
import { type Clock, repeat } from "../../../keeper/clock.ts";
import { openEventLog } from "../../../keeper/events/log.ts";
import { type Keeper, type KeeperParts, startServing } from "../../../keeper/serve.ts";
import { createTimers } from "../../../keeper/timers.ts";
import { previewToken } from "../../../link/index.ts";
import { tokenParameter } from "../../../preview/access.ts";
import { type Layout, prepareStateDirectory, readOwner } from "../layout.ts";
import { createLinks } from "../links.ts";
import type { Origin, SandboxRecord } from "../record.ts";
import { openAccount } from "./account/account.ts";
import { createSlots } from "./account/slots.ts";
import { allowlistsOf } from "./create/network.ts";
import { openImages } from "./image/images.ts";
import { openStore } from "./image/store.ts";
import { createRuntime, type Found } from "./runtime.ts";
import type { KeeperSettings } from "./settings.ts";
import { watchLinks } from "./watch.ts";

/** Takes over what the last keeper left and serves until nobody needs it. The caller holds the state directory's lock. */
export async function startKeeper(
  layout: Layout,
  settings: KeeperSettings,
  clock: Clock,
  log: (line: string) => void,
): Promise<Keeper> {
  const lingering = { leaveSoon() {} };
  const { hosts } = await hostRegistries({
    home: process.env["HOME"] ?? "/",
    environment: process.env,
    cacheFile: join(layout.root, "registries.json"),
  });
  // Modal's allow-list takes names alone.
  const registries = hosts.map((host) => new URL(`http://${host}`).hostname);
  const parts = compose(layout, settings, registries, clock, log, () => lingering.leaveSoon());
  return await startServing(parts, lingering);
}

function compose(
  layout: Layout,
  settings: KeeperSettings,
  registries: readonly string[],
  clock: Clock,
  log: (line: string) => void,
  onChange: () => void,
): KeeperParts<SandboxRecord, Origin, Found> {
  prepareStateDirectory(layout);
  const tags = { "slipway-owner": readOwner(layout) };
  const onError = (box: Box<SandboxRecord>, error: unknown) => log(`${box.id}: ${(error as Error).stack}`);
  const events = openEventLog(layout.events, () => clock.now());
  const boxes = openBoxes<SandboxRecord>(layout, events, clock, {
    onChange(box) {
      timers.schedule(box);
      watching.look(box);
      onChange();
    },
    onForget(box) {
      timers.forget(box);
      watching.forget(box);
      onChange();
    },
    cameAt: (box, state) =>
      state === "running" ? (box.record.run?.startedAt ?? undefined) : runtime.runs.takeEnd(box.id),
  });
  const account = openAccount(settings, clock);
  const slots = createSlots(settings.maxConcurrent);
  const store = openStore(layout.tools);
  const working = new Set<string>();
  const held = new Map<string, number>();
  const images = openImages({ account, slots, store, tags, working, layout, clock });
  const links = createLinks({
    tunnelCa: settings.tunnelCa,
    addressOf: async (id) => boxes.get(id).record.run?.link ?? null,
  });
  const { regions } = settings;
  const runtime = createRuntime({
    account,
    boxes,
    clock,
    images,
    links,
    slots,
    store,
    tags,
    regions,
    registries,
    working,
    held,
  });
  let collecting: Promise<number> = Promise.resolve(0);
  const collectGarbage = () => {
    collecting = collecting.catch(() => 0).then(() => images.collect(new Set(usedImages())));
    return collecting;
  };
  const collectSoon = () => {
    collectGarbage().catch((error) => log(`garbage: ${error.stack}`));
  };
  const { capture } = runtime;
  const snapshots = openSnapshots<SandboxRecord, Origin>({
    layout,
    boxes,
    events,
    clock,
    capture,
    collectGarbage: collectSoon,
  });
  const lifecycle = createLifecycle({
    provider: "modal",
    boxes,
    clock,
    runtime,
    snapshots,
    onError,
    collectGarbage: collectSoon,
  });
  const timers = createTimers({ clock, events, boxes, lifecycle, snapshots, use: runtime.use, onError });
  const watching = watchLinks({ clock, links, runs: runtime.runs, lifecycle, onError });
  function* usedImages(): Iterable<string> {
    yield* held.keys();
    for (const { imageId } of snapshots.all()) yield imageId;
    for (const { record } of boxes.all()) yield record.imageId;
  }

  return {
    layout,
    clock,
    events,
    boxes,
    lifecycle,
    snapshots,
    timers,
    runtime,
    collectGarbage,
    log,
    onError,
    prepareImage: (image, { signal, progress }) => images.prepare(image, { signal, progress }),
    removeImage: (key) => images.discard(key, new Set(usedImages())),
    async setPolicy(box) {
      if (box.record.state !== "running") return;
      const sandbox = await runtime.runs.handle(box);
      await account.ask("change the network", () =>
        sandbox.updateNetworkPolicy(allowlistsOf(box.record.network, registries)),
      );
    },
    async previewUrl(box, port) {
      if (box.record.state === "sleeping") await lifecycle.wake(box.id);
      const { key, run, state, reason } = box.record;
      const address = run?.previews[port];
      if (address === undefined) {
        throw new SlipwayError("sandbox_not_running", `${box.id} is ${state} (${reason}).`);
      }
      const token = previewToken(Buffer.from(key, "hex"), port);
      const origin = address.port === 443 ? address.host : `${address.host}:${address.port}`;
      return `https://${origin}/?${tokenParameter}=${token}`;
    },
    // Refused credentials are told to whoever starts the keeper, not to its log.
    beforeTakeOver: () => account.check(),
    async takeOver() {
      for (const box of boxes.all()) watching.look(box);
    },
    watch: () => [
      repeat(
        clock,
        () => dayMs,
        () => collectGarbage().catch((error) => log(`garbage: ${error.stack}`)),
      ),
    ],
    async letGo() {
      watching[Symbol.dispose]();
      await links[Symbol.asyncDispose]();
    },
  };
}

const dayMs = 24 * 3_600_000;
