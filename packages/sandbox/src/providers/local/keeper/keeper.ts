import type { Clock } from "../../../keeper/clock.ts";
import { type Keeper, startServing } from "../../../keeper/serve.ts";
import type { Box } from "./boxes/boxes.ts";
import { composeKeeper, type KeeperParts } from "./compose.ts";
import type { KeeperSettings } from "./settings.ts";
import { startFloorWatch } from "./watch/floor.ts";
import { startHearing } from "./watch/hearing.ts";
import { writtenBytes } from "./watch/unlinked.ts";
import { startWatch, takenBytes } from "./watch/watch.ts";

/** Takes over what the last keeper left and serves until nobody needs it. The caller holds the state directory's lock. */
export async function startKeeper(
  settings: KeeperSettings,
  clock: Clock,
  log: (line: string) => void,
): Promise<Keeper> {
  const lingering = { leaveSoon() {} };
  const parts = await composeKeeper(settings, clock, { log, onChange: () => lingering.leaveSoon() });
  const { boxes, cgroups, images, layers, networks, onError, previews, usedLayers } = parts;
  return await startServing(
    {
      ...parts,
      prepareImage: (image, context) => images.prepare(image, context),
      removeImage: (key) => images.remove(key),
      setPolicy: (box) => networks.setPolicy(box),
      previewUrl: (box, port) => previews.url(box, port),
      watch: () => watchesOf(parts),
      async beforeTakeOver() {
        await layers.collect(new Set(usedLayers()), { growing: true }).catch((error) => log(`garbage: ${error.stack}`));
      },
      async takeOver() {
        await parts.imageBuilder.endOrphans().catch((error) => log(`image builds: ${error.stack}`));
        for (const box of boxes.all()) await previews.restore(box).catch((error) => onError(box, error));
        cgroups.removeAbandoned().catch((error) => log(`control groups: ${error.stack}`));
      },
      letGo: () => letGo(parts),
    },
    lingering,
  );
}

function watchesOf(parts: KeeperParts): Disposable[] {
  const writtenBy = async (box: Box) => writtenBytes(await parts.hold.processes(box));
  return [
    startWatch(parts),
    startHearing(parts),
    startFloorWatch({ ...parts, writtenBytes: writtenBy, takenBytes: (box) => takenBytes(parts, box) }),
  ];
}

/** Removes unused layers before it ends the service that removes them. */
async function letGo({ cgroups, collectGarbage, launchpad, service }: KeeperParts): Promise<void> {
  await collectGarbage();
  await launchpad[Symbol.asyncDispose]();
  await service[Symbol.asyncDispose]();
  await cgroups.leave();
}
