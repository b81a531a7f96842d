import { AsyncLocalStorage } from "node:async_hooks";
import { setTimeout as delay } from "node:timers/promises";
import { type App, type Image, ModalClient, type Sandbox, type SandboxCreateParams } from "modal";
import { throwIfAborted } from "../../../../abort.ts";
import type { Clock } from "../../../../keeper/clock.ts";
import { runTag } from "../../inside.ts";
import type { KeeperSettings } from "../settings.ts";
import { withBackOff } from "./back-off.ts";
import { type Asked, isNotFound, isTaken, modalError } from "./errors.ts";

/** What the keeper asks of Modal. Every failure is one of our codes; what Modal refuses for now is asked again. */
export interface Account {
  /** Fails when the credentials are refused. */
  check(): Promise<void>;
  /** Under a name that nothing else running has: asked for twice, it is there once. */
  create(imageId: string, params: SandboxCreateParams & { name: string }, signal?: AbortSignal): Promise<Sandbox>;
  /** Undefined when nothing of that name runs. */
  find(name: string): Promise<Sandbox | undefined>;
  sandbox(sandboxId: string): Promise<Sandbox>;
  /** Ids of what runs with the tags. */
  list(tags: Readonly<Record<string, string>>): Promise<string[]>;
  /** Undefined when it is gone. */
  tags(sandboxId: string): Promise<Record<string, string> | undefined>;
  /** Resolves when it runs no more, or did not. */
  terminate(sandboxId: string): Promise<void>;
  /** Null while it runs; undefined when Modal knows nothing of it. */
  exitCode(sandboxId: string): Promise<number | null | undefined>;
  /** When it ran, by Modal's books; undefined when Modal knows nothing of it. */
  times(name: string): Promise<Times | undefined>;
  /** The id of an image of its present files, which stays until it is deleted. */
  snapshot(sandbox: Sandbox): Promise<string>;
  build(image: (client: ModalClient) => Image, onOutput: (text: string) => void): Promise<string>;
  publish(imageId: string, name: string): Promise<void>;
  /** The id of an image by its published name; undefined when there is none. */
  published(name: string): Promise<string | undefined>;
  deleteImage(imageId: string): Promise<void>;
  /** Any other call. */
  ask<T>(doing: string, call: () => Promise<T>, asked?: Asked, signal?: AbortSignal): Promise<T>;
}

export interface Times {
  readonly startedAt: number | null;
  /** Null while it runs. */
  readonly endedAt: number | null;
}

const snapshotLimitMs = 10 * 60_000;
const terminateLimitMs = 60_000;

export function openAccount({ tokenId, tokenSecret, environment, app }: KeeperSettings, clock: Clock): Account {
  const building = new AsyncLocalStorage<(text: string) => void>();
  const client = new ModalClient({
    tokenId,
    tokenSecret,
    ...(environment !== undefined && { environment }),
    // Longer waits are ours.
    maxThrottleWaitSecs: 30,
    grpcMiddleware: [watchBuilds(building)],
  });
  const ask: Account["ask"] = async (doing, call, asked = "other", signal) => {
    try {
      return await withBackOff(call, { clock, signal });
    } catch (error) {
      throw modalError(error, asked, doing);
    }
  };
  let opening: Promise<App> | undefined;
  const ourApp = () => {
    opening ??= ask(`open the app ${app}`, () => client.apps.fromName(app, { createIfMissing: true })).catch(
      (error) => {
        opening = undefined;
        throw error;
      },
    );
    return opening;
  };
  /** Undefined instead of an error about something that is not there. */
  const orMissing = <T>(call: () => Promise<T>) =>
    call().catch((error: unknown) => {
      if (isNotFound(error)) return undefined;
      throw error;
    });
  const sandbox = (id: string) => client.sandboxes.fromId(id);
  const find: Account["find"] = (name) =>
    ask(`find ${name}`, () => orMissing(() => client.sandboxes.fromName(app, name)));
  const exitCode: Account["exitCode"] = (id) =>
    ask(`look at ${id}`, () => orMissing(async () => await (await sandbox(id)).poll()));

  return {
    check: async () => void (await ourApp()),
    async create(imageId, params, signal) {
      const owner = await ourApp();
      const image = await ask("find the image", () => client.images.fromId(imageId), "create", signal);
      return await ask(
        `create ${params.name}`,
        async () => {
          throwIfAborted(signal);
          try {
            return await client.sandboxes.create(owner, image, params);
          } catch (error) {
            // An answer may have been lost.
            const made = isTaken(error)
              ? await orMissing(() => client.sandboxes.fromName(app, params.name))
              : undefined;
            if (made === undefined) throw error;
            return made;
          }
        },
        "create",
        signal,
      );
    },
    find,
    sandbox,
    async list(tags) {
      const { appId } = await ourApp();
      return await ask("list the sandboxes", async () => {
        const ids: string[] = [];
        for await (const { sandboxId } of client.sandboxes.list({ appId, tags: { ...tags } })) ids.push(sandboxId);
        return ids;
      });
    },
    tags: (id) => ask(`read the tags of ${id}`, () => orMissing(async () => await (await sandbox(id)).getTags())),
    async terminate(id) {
      await ask(`end ${id}`, () => orMissing(async () => await (await sandbox(id)).terminate()));
      // A second one may answer before the first has ended it.
      for (
        let waitedMs = 0, stepMs = 20;
        waitedMs < terminateLimitMs;
        waitedMs += stepMs, stepMs = Math.min(2000, 2 * stepMs)
      ) {
        if ((await exitCode(id)) !== null) return;
        await delay(stepMs);
      }
      throw modalError(new Error(`it still runs ${terminateLimitMs / 1000} s later`), "other", `end ${id}`);
    },
    exitCode,
    async times(name) {
      const { appId } = await ourApp();
      const tags = [{ tagName: runTag, tagValue: name }];
      const request = { appId, beforeTimestamp: 0, environmentName: environment ?? "", includeFinished: true, tags };
      // The SDK has no call for it. Sandboxes with a GPU are in the other list.
      const { sandboxes } = await ask(`look up when ${name} ran`, async () => {
        const listed = await client.cpClient.sandboxListV2(request);
        return listed.sandboxes.length > 0 ? listed : await client.cpClient.sandboxList(request);
      });
      const [found] = sandboxes;
      if (found?.taskInfo === undefined) return undefined;
      return { startedAt: inMs(found.taskInfo.startedAt), endedAt: inMs(found.taskInfo.finishedAt) };
    },
    async snapshot(running) {
      const taken = await ask(`snapshot ${running.sandboxId}`, () =>
        running.snapshotFilesystem({ ttlMs: null, timeoutMs: snapshotLimitMs }),
      );
      return taken.imageId;
    },
    async build(image, onOutput) {
      const owner = await ourApp();
      const built = await building.run(onOutput, () =>
        ask("build an image", () => image(client).build(owner), "image"),
      );
      return built.imageId;
    },
    publish: (imageId, name) =>
      ask(`publish ${name}`, async () => await (await client.images.fromId(imageId)).publish(name), "image"),
    published: (name) =>
      ask(`find the image ${name}`, () => orMissing(async () => (await client.images.fromName(name)).imageId)),
    deleteImage: (imageId) =>
      ask(`delete ${imageId}`, async () => void (await orMissing(() => client.images.delete(imageId)))),
    ask,
  };
}

function inMs(seconds: number): number | null {
  return seconds > 0 ? Math.round(seconds * 1000) : null;
}

type Middleware = NonNullable<NonNullable<ConstructorParameters<typeof ModalClient>[0]>["grpcMiddleware"]>[number];

/** The SDK drops what a build prints. It is a stream that passes here. */
function watchBuilds(building: AsyncLocalStorage<(text: string) => void>): Middleware {
  return async function* watch(call, options) {
    if (!call.responseStream) {
      const response = yield* call.next(call.request, options);
      return response;
    }
    for await (const response of call.next(call.request, options)) {
      const { taskLogs = [] } = response as { taskLogs?: readonly { readonly data: string }[] };
      for (const { data } of taskLogs) building.getStore()?.(data);
      yield response;
    }
    return undefined;
  };
}
