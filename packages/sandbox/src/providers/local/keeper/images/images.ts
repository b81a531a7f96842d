import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { type CustomImage, type Image, SlipwayError } from "@slipway/contract";
import type { HostRegistries } from "../../../../host-registries.ts";
import type { Clock } from "../../../../keeper/clock.ts";
import { readRecords, removeRecord, writeRecord } from "../../../../keeper/record.ts";
import { createSharedWork, type WorkOptions } from "../../../../keeper/sharing.ts";
import type { DebianSources } from "../../launch/debian-sources.ts";
import type { Identity } from "../../launch/launch.ts";
import { ensureMadeUpLayer, ensureSkeleton } from "../../launch/skeleton.ts";
import type { Layout } from "../../layout.ts";
import type { LayerId, RootImage } from "../../record.ts";
import type { Layers } from "../boxes/layers.ts";
import type { ImageBuilder } from "./build.ts";
import { debianRecipes, rootfsSettings } from "./debian.ts";
import { contentOf, customRecipe, isNodeImage, type NodeImage, nodeRecipe, type Recipe } from "./recipes.ts";

/** Turns the name or recipe of an image into layers. Builds missing ones. */
export interface Images {
  resolve(image: Image, options: WorkOptions): Promise<RootImage>;
  /** The key of what it built, for `remove`; null: the image was there. */
  prepare(image: Image, options: WorkOptions): Promise<string | null>;
  /** Forgets an image. The next collection removes its layers, unless sandboxes use them. */
  remove(key: string): void;
  usedLayers(): Iterable<LayerId>;
}

export interface ImageParts {
  readonly layout: Layout;
  readonly layers: Pick<Layers, "has">;
  readonly identity: Identity | null;
  readonly clock: Clock;
  readonly registries: HostRegistries;
  readonly debian: DebianSources;
  /** See `SkeletonSources`. */
  readonly egressCa: string;
  readonly builder: Pick<ImageBuilder, "build">;
}

/** The layers that a built image adds to its base, which may change below them. */
interface ImageRecord {
  readonly key: string;
  readonly image: Image;
  readonly layers: readonly LayerId[];
  readonly usedAt: number;
}

const dayMs = 24 * 60 * 60 * 1000;
/** Forgets an image that was not used for this long. Its sandboxes stay. */
const unusedMs = 30 * dayMs;

/** A resolved image, and its part in the keys of images built on it. */
interface Resolved {
  readonly key: string;
  readonly root: RootImage;
  /** The key of the record that this call has made. */
  readonly built?: string | null;
}

type Build = (options: WorkOptions, keep: (layers: readonly LayerId[]) => ImageRecord) => Promise<ImageRecord>;

export async function openImages(parts: ImageParts): Promise<Images> {
  const { layout, identity, builder, debian } = parts;
  const sources = { settings: parts.registries.settings, egressCa: parts.egressCa };
  const madeUp = { layers: layout.layers, identity };
  const skeleton = await ensureSkeleton({ ...madeUp, ...sources });
  const settings = await ensureMadeUpLayer("rootfs", await rootfsSettings(sources, debian), madeUp);
  const host: Resolved = { key: keyOf("host", hostRelease()), root: { kind: "host", layers: [skeleton] } };
  const records = readImages(parts);
  const builds = createSharedWork<ImageRecord>();

  /** The layers of a key. The first caller builds them. */
  const layersOf = async (
    key: string,
    image: Image,
    options: WorkOptions,
    build: Build,
  ): Promise<{ layers: readonly LayerId[]; built: string | null }> => {
    const now = parts.clock.now();
    const keep = (layers: readonly LayerId[]): ImageRecord => {
      const record = { key, image, layers, usedAt: now };
      writeRecord(imageRecord(layout, key), record);
      records.set(key, record);
      return record;
    };
    const known = records.get(key);
    if (known === undefined) {
      const { layers } = await builds.join(key, options, (shared) => build(shared, keep));
      return { layers, built: key };
    }
    if (now - known.usedAt > dayMs) keep(known.layers);
    return { layers: known.layers, built: null };
  };

  const buildOn =
    (base: RootImage, recipe: Recipe): Build =>
    (shared, keep) =>
      builder.build({ base, recipe, ...shared }, keep);

  const node = async (image: NodeImage, below: Resolved, options: WorkOptions): Promise<Resolved> => {
    const recipe = nodeRecipe(image);
    const key = keyOf(contentOf(recipe));
    return above(below, key, await layersOf(key, image, options, buildOn(host.root, recipe)));
  };

  const debianImage = async (options: WorkOptions): Promise<Resolved> => {
    const { unpack, configure } = debianRecipes(debian);
    const key = keyOf(contentOf(unpack), contentOf(configure), process.arch);
    const { layers, built } = await layersOf(key, "debian", options, (shared, keep) =>
      builder.build({ base: host.root, recipe: unpack, ...shared }, (tree) =>
        builder.build({ base: { kind: "rootfs", layers: [settings, ...tree] }, recipe: configure, ...shared }, keep),
      ),
    );
    return { key, root: { kind: "rootfs", layers: [settings, ...layers] }, built };
  };

  const custom = async (image: CustomImage, options: WorkOptions): Promise<Resolved> => {
    refuseAptOnHost(image);
    const named = await resolve(image.base, options);
    const needsNode = named.root.kind === "rootfs" && image.npm.length > 0;
    const base = needsNode ? await node("node24", named, options) : named;
    const recipe = customRecipe(image, base.root.kind);
    if (recipe === null) return base;
    const key = keyOf(base.key, contentOf(recipe));
    return above(base, key, await layersOf(key, image, options, buildOn(base.root, recipe)));
  };

  const resolve = async (image: Image, options: WorkOptions): Promise<Resolved> => {
    if (typeof image !== "string") return custom(image, options);
    if (image === "host" || image === "default") return host;
    if (image === "debian") return debianImage(options);
    if (isNodeImage(image)) return node(image, host, options);
    throw new SlipwayError("unknown_image", `Unknown image ${JSON.stringify(image)}.`);
  };
  return {
    resolve: async (image, options) => (await resolve(image, options)).root,
    prepare: async (image, options) => (await resolve(image, options)).built ?? null,
    remove(key) {
      if (records.delete(key)) removeRecord(imageRecord(layout, key));
    },
    *usedLayers() {
      yield* [skeleton, settings];
      for (const { layers } of records.values()) yield* layers;
    },
  };
}

function above(
  base: Resolved,
  key: string,
  { layers, built }: { readonly layers: readonly LayerId[]; readonly built: string | null },
): Resolved {
  const root = { kind: base.root.kind, layers: [...layers, ...base.root.layers] };
  return { key: keyOf(base.key, key), root, built };
}

function refuseAptOnHost({ base, apt }: CustomImage): void {
  if (apt.length === 0 || base === "debian") return;
  throw new SlipwayError(
    "invalid_request",
    `apt packages need the base \`debian\`: ${base} uses the host's /usr, which is read-only.`,
  );
}

function readImages({ layout, layers, clock }: ImageParts): Map<string, ImageRecord> {
  const records = new Map<string, ImageRecord>();
  for (const record of readRecords<ImageRecord>(layout.records.images)) {
    const isKept = record.layers.every(layers.has) && clock.now() - record.usedAt < unusedMs;
    if (isKept) records.set(record.key, record);
    else removeRecord(imageRecord(layout, record.key));
  }
  return records;
}

function imageRecord(layout: Layout, key: string): string {
  return join(layout.records.images, `${key}.json`);
}

/** Builds on the host's /usr may not fit another release. Updates within a release need no new build. */
function hostRelease(): string {
  try {
    return readFileSync("/etc/os-release", "utf8");
  } catch {
    return "";
  }
}

function keyOf(...content: readonly unknown[]): string {
  return createHash("sha256").update(JSON.stringify(content)).digest("hex").slice(0, 32);
}
