import { type Image, SlipwayError } from "@slipway/contract";
import type { HostRegistries } from "../host-registries.ts";
import type { Identity } from "../launch.ts";
import type { Layout } from "../layout.ts";
import type { LayerId, RootImage } from "../record.ts";
import { ensureSkeleton } from "../skeleton.ts";

/** Turns the name or recipe of an image into layers, building them when they are not there yet. */
export interface Images {
  resolve(image: Image, options: ResolveOptions): Promise<RootImage>;
  usedLayers(): Iterable<LayerId>;
}

export interface ResolveOptions {
  readonly signal: AbortSignal;
  readonly progress?: (line: string) => void;
}

export interface ImageParts {
  readonly layout: Layout;
  readonly identity: Identity | null;
  readonly registries: HostRegistries;
}

export async function openImages({ layout, identity, registries }: ImageParts): Promise<Images> {
  const skeleton = await ensureSkeleton({ layers: layout.layers, identity, settings: registries.settings });
  const host: RootImage = { kind: "host", layers: [skeleton] };
  return {
    async resolve(image) {
      if (image === "host" || image === "default") return host;
      throw new SlipwayError("unknown_image", `there is no image ${JSON.stringify(image)}`);
    },
    *usedLayers() {
      yield skeleton;
    },
  };
}
