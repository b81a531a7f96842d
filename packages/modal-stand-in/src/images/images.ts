import { createHash } from "node:crypto";
import { SlipwayError, type SnapshotId } from "@slipway/contract";
import type { Boxes } from "../boxes/boxes.ts";
import type { Clock } from "../clock.ts";
import type { FaultPlan } from "../fault-plan.ts";
import { newModalId } from "../ids.ts";
import type { Secrets } from "../objects/secrets.ts";
import { found, notFound } from "../refuse.ts";
import type { Methods } from "../serve.ts";
import { type ImageRequest, type Result, resultStatus } from "../wire.ts";
import { makeBaseLayer } from "./base-layer.ts";
import { BuildFailed, buildImage, type ImageContent } from "./build.ts";
import { type Instruction, parseDockerfile } from "./dockerfile.ts";

export interface Images {
  readonly methods: Methods;
  get(id: string): ImageContent;
  /** A sandbox's files become an image; after its time it cannot be used. */
  add(content: ImageContent, lifetimeSeconds: number): string;
}

interface Parts {
  readonly boxes: Boxes;
  readonly secrets: Secrets;
  readonly clock: Clock;
  readonly faults: FaultPlan;
}

interface Build {
  readonly result: Promise<Result>;
  ended: Result | undefined;
  log: string;
}

/** Images by content: the same steps on the same base are built once. */
export function createImages({ boxes, secrets, clock, faults }: Parts): Images {
  const images = new Map<string, ImageContent & { readonly expiresAtMs: number }>();
  const builds = new Map<string, Build>();
  const byContent = new Map<string, string>();
  const tags = new Map<string, string>();
  let baseLayer: Promise<SnapshotId> | null = null;
  const registryImage = async (): Promise<ImageContent> => {
    baseLayer ??= makeBaseLayer(boxes);
    return { snapshot: await baseLayer, environment: {}, workdir: null, entrypoint: [] };
  };
  const imageOf = (id: string) => {
    const image = images.get(id);
    if (image === undefined) throw notFound(`Could not find image with ID ${id}`);
    return image;
  };
  const get = (id: string) => {
    const image = imageOf(id);
    if (image.expiresAtMs <= clock.now()) throw notFound(`Could not find image with ID ${id}: it has expired`);
    return image;
  };
  const remove = async (id: string) => {
    const image = images.get(id);
    if (image === undefined) throw notFound(`No Image with ID '${id}' found`);
    images.delete(id);
    for (const map of [byContent, tags]) for (const [key, value] of map) if (value === id) map.delete(key);
    const isUsed = [...images.values()].some(({ snapshot }) => snapshot === image.snapshot);
    // A sandbox that starts from it keeps its files.
    await image.directory?.clear();
    if (image.snapshot !== null && !isUsed && image.snapshot !== (await baseLayer))
      await boxes.deleteSnapshot(image.snapshot).catch(ifInUse);
  };
  const start = (
    id: string,
    { image }: ImageRequest,
    instructions: readonly Instruction[],
    base: string | null,
  ): Build => {
    const build: Build = { result: Promise.resolve({ status: 0 }), ended: undefined, log: "" };
    const work = async (): Promise<Result> => {
      try {
        await faults.waitAsBuild();
        const content = await buildImage(boxes, {
          base: base === null ? await registryImage() : get(base),
          instructions,
          secrets: secrets.environmentOf(image.secretIds),
          log: (text) => {
            build.log += text;
          },
        });
        images.set(id, { ...content, expiresAtMs: Number.POSITIVE_INFINITY });
        return { status: resultStatus.success };
      } catch (error) {
        for (const [key, value] of byContent) if (value === id) byContent.delete(key);
        const words = error instanceof BuildFailed ? error.message : `The build failed: ${(error as Error).message}`;
        return { status: resultStatus.failure, exception: words };
      }
    };
    const result = work().then((ended) => {
      build.ended = ended;
      return ended;
    });
    return Object.assign(build, { result });
  };
  return {
    get,
    add(content, lifetimeSeconds) {
      const id = newModalId("im");
      const expiresAtMs = lifetimeSeconds > 0 ? clock.now() + lifetimeSeconds * 1000 : Number.POSITIVE_INFINITY;
      images.set(id, { ...content, expiresAtMs });
      return id;
    },
    methods: {
      imageGetOrCreate(request: ImageRequest) {
        const instructions = parseDockerfile(request.image.dockerfileCommands);
        const from = instructions.find((step) => step.type === "from");
        const base = request.image.baseImages.find(({ dockerTag }) => dockerTag === from?.image)?.imageId ?? null;
        if (base !== null) get(base);
        const key = contentKey(base, instructions, secrets.environmentOf(request.image.secretIds));
        const known = request.forceBuild ? undefined : byContent.get(key);
        const id = known ?? newModalId("im");
        byContent.set(key, id);
        if (known === undefined) builds.set(id, start(id, request, instructions, base));
        return { imageId: id, result: builds.get(id)?.ended, metadata: {} };
      },
      async *imageJoinStreaming({ imageId }: { imageId: string }) {
        const build = found(builds, imageId, "Image");
        const result = await build.result;
        yield { entryId: "1-0", taskLogs: [{ data: build.log, fileDescriptor: 1 }], result, eof: true, metadata: {} };
      },
      imageFromId({ imageId }: { imageId: string }) {
        get(imageId);
        return { imageId, metadata: {} };
      },
      imageDelete: ({ imageId }: { imageId: string }) => remove(imageId),
      imagePublish({ imageId, tag, environmentName }: { imageId: string; tag: string; environmentName: string }) {
        get(imageId);
        tags.set(`${environmentName}/${tag}`, imageId);
      },
      imageGetByTag({ tag, environmentName }: { tag: string; environmentName: string }) {
        const imageId = found(tags, `${environmentName}/${tag}`, "Image");
        get(imageId);
        return { imageId, metadata: {} };
      },
    },
  };
}

/** What a registry calls an image does not matter: all of them are this machine. Its name still makes another image. */
function contentKey(base: string | null, instructions: readonly Instruction[], secrets: object): string {
  return createHash("sha256")
    .update(JSON.stringify([base, instructions, secrets]))
    .digest("hex");
}

function ifInUse(error: unknown): void {
  if (!(error instanceof SlipwayError) || error.code !== "snapshot_in_use") throw error;
}
