import { createHash } from "node:crypto";
import { type Image, SlipwayError } from "@slipway/contract";
import { createBuildOutput } from "../../../../keeper/build-output.ts";
import type { Clock } from "../../../../keeper/clock.ts";
import { readRecords, removeRecord, type Tool, writeRecord } from "../../../../keeper/record.ts";
import { createSharedWork, type WorkOptions } from "../../../../keeper/sharing.ts";
import type { Layout } from "../../layout.ts";
import type { Origin } from "../../record.ts";
import { recipeOf } from "./bases.ts";
import { addLayer, type LayerParts } from "./layer.ts";

export interface Images {
  /** The files of an image as Modal builds it, without anything of ours. */
  base(image: Image, options: WorkOptions): Promise<Origin>;
  /** The same files, with the programs and the tools that a sandbox needs. */
  fit(origin: Origin, tools: readonly Tool[], options: WorkOptions): Promise<Origin>;
  /** Makes an image ready for sandboxes without tools. The key of what it built, for `discard`; null: it was there. */
  prepare(image: Image, options: WorkOptions): Promise<string | null>;
  /** Deletes what `prepare` has built, unless it is used. */
  discard(key: string, used: ReadonlySet<string>): Promise<void>;
  /** Records an image of a sandbox's files, so that it is deleted once nothing names it. */
  keep(origin: Origin): void;
  /** Modal no longer has it. */
  forget(imageId: string): void;
  /** Deletes images of sandboxes' files that are not used, and others that were not for long. */
  collect(used: ReadonlySet<string>): Promise<number>;
}

export interface ImageParts extends LayerParts {
  readonly layout: Layout;
  readonly clock: Clock;
}

interface ImageRecord extends Origin {
  readonly key: string;
  /** Of a sandbox's files: nobody can make it again. */
  readonly isOwn: boolean;
  readonly usedAt: number;
}

const dayMs = 24 * 3_600_000;
const unusedMs = 30 * dayMs;

export function openImages(parts: ImageParts): Images {
  const { account, clock, layout, store } = parts;
  const work = createSharedWork<Origin>();
  const records = new Map<string, ImageRecord>();
  for (const record of readRecords<ImageRecord>(layout.records.images)) records.set(record.key, record);
  const save = (record: ImageRecord): ImageRecord => {
    writeRecord(layout.imageRecord(record.key), record);
    records.set(record.key, record);
    return record;
  };
  const remove = (record: ImageRecord) => {
    removeRecord(layout.imageRecord(record.key));
    records.delete(record.key);
  };
  /** Made once for each key, and looked for at Modal before. */
  const made = async (key: string, options: WorkOptions, make: (options: WorkOptions) => Promise<Origin>) => {
    const known = records.get(key);
    if (known !== undefined) {
      if (clock.now() - known.usedAt > dayMs) save({ ...known, usedAt: clock.now() });
      return known;
    }
    return await work.join(key, options, async (shared) =>
      save({ ...(await make(shared)), key, isOwn: false, usedAt: clock.now() }),
    );
  };

  const base: Images["base"] = async (image, options) => {
    const { from, steps } = recipeOf(image);
    const { imageId } = await made(keyOf("base", from, steps), options, async ({ progress = () => {} }) => {
      progress(`Build an image from ${from} at Modal.`);
      return { imageId: await build(parts, { from, steps }, progress), store: [] };
    });
    return { imageId, store: [] };
  };
  const fit = async (origin: Origin, tools: readonly Tool[], options: WorkOptions) => {
    const needed = [await store.programs(), ...tools.map(({ digest }) => digest)];
    const missing = needed.filter((entry) => !origin.store.includes(entry)).sort();
    if (missing.length === 0) return { fitted: origin, built: null };
    const key = keyOf("layer", origin.imageId, missing);
    let built: string | null = null;
    const { imageId, store: entries } = await made(key, options, async (shared) => {
      const name = `slipway-${key}`;
      const found = await account.published(name);
      if (found !== undefined) return { imageId: found, store: [...origin.store, ...missing] };
      const layered = await addLayer(parts, origin, missing, shared);
      // It is found again by its name when these records are lost.
      await account.publish(layered.imageId, name);
      built = key;
      return layered;
    });
    return { fitted: { imageId, store: entries }, built };
  };

  return {
    base,
    fit: async (origin, tools, options) => (await fit(origin, tools, options)).fitted,
    prepare: async (image, options) => (await fit(await base(image, options), [], options)).built,
    async discard(key, used) {
      const record = records.get(key);
      if (record === undefined || used.has(record.imageId)) return;
      await account.deleteImage(record.imageId);
      remove(record);
    },
    keep: ({ imageId, store: entries }) =>
      void save({ imageId, store: entries, key: imageId, isOwn: true, usedAt: clock.now() }),
    forget(imageId) {
      for (const record of [...records.values()]) if (record.imageId === imageId) remove(record);
    },
    async collect(used) {
      const garbage = [...records.values()].filter(
        ({ imageId, isOwn, usedAt }) => !used.has(imageId) && (isOwn || clock.now() - usedAt > unusedMs),
      );
      for (const record of garbage) {
        // All others are shared over the account: by their steps, or by the name of what is in them.
        if (record.isOwn) await account.deleteImage(record.imageId);
        remove(record);
      }
      return garbage.length;
    },
  };
}

async function build(
  { account }: ImageParts,
  { from, steps }: ReturnType<typeof recipeOf>,
  progress: (line: string) => void,
): Promise<string> {
  const output = createBuildOutput(progress);
  try {
    return await account.build(
      (client) => client.images.fromRegistry(from).dockerfileCommands([...steps]),
      (text) => output.push("stdout", Buffer.from(text)),
    );
  } catch (error) {
    output.end();
    if (!(error instanceof SlipwayError) || error.code !== "image_build_failed" || output.lastLines === "") throw error;
    throw new SlipwayError("image_build_failed", `${error.message}\n${output.lastLines}`, { cause: error });
  }
}

function keyOf(...content: readonly unknown[]): string {
  return createHash("sha256").update(JSON.stringify(content)).digest("hex").slice(0, 32);
}
