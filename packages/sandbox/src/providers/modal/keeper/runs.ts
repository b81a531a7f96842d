import { randomBytes } from "node:crypto";
import { hasCode, type SandboxId, SlipwayError } from "@slipway/contract";
import type { Sandbox } from "modal";
import { throwIfAborted } from "../../../abort.ts";
import type { Dial } from "../../../agent/connection.ts";
import { createFiles } from "../../../agent/files/files.ts";
import type { Box, Boxes } from "../../../keeper/boxes/boxes.ts";
import type { Clock } from "../../../keeper/clock.ts";
import { readBytes } from "../../../run.ts";
import { inside, linkPort, previewPorts } from "../inside.ts";
import type { Links } from "../links.ts";
import type { Address, Run, SandboxRecord } from "../record.ts";
import type { Account } from "./account/account.ts";
import type { Slots } from "./account/slots.ts";
import { graceMs, paramsOf } from "./create/sandbox.ts";
import type { Images } from "./image/images.ts";
import type { Store } from "./image/store.ts";

/** The sandboxes at Modal behind ours: one for each start. */
export interface Runs {
  plan(id: SandboxId): Run;
  /** Starts what the record has planned. Resolves when its link answers. */
  start(box: Box<SandboxRecord>, signal: AbortSignal): Promise<void>;
  /** Resolves when it runs no more, or did not. */
  end(box: Box<SandboxRecord>): Promise<void>;
  /** What runs at Modal has this address. */
  found(box: Box<SandboxRecord>, sandboxId: string): Promise<void>;
  /** Tells the program inside when the sandbox ends. Fails when it cannot be reached. */
  keep(box: Box<SandboxRecord>, signal?: AbortSignal): Promise<void>;
  handle(box: Box<SandboxRecord>): Promise<Sandbox>;
  /** When its last start ended by Modal's books, until that is taken. Undefined: they do not say. */
  takeEnd(id: SandboxId): number | undefined;
}

export interface RunParts {
  readonly account: Account;
  readonly boxes: Boxes<SandboxRecord>;
  readonly clock: Clock;
  readonly images: Images;
  readonly links: Links;
  readonly slots: Slots;
  readonly store: Store;
  readonly tags: Readonly<Record<string, string>>;
  readonly regions: readonly string[];
  /** Hosts of the packages that this machine is set to. */
  readonly registries: readonly string[];
}

/** An image that is new on one of Modal's machines takes a while. */
const startLimitMs = 5 * 60_000;

export function createRuns(parts: RunParts): Runs {
  const { account, boxes, clock, images, links, slots, store } = parts;

  const ends = new Map<SandboxId, number>();

  const found: Runs["found"] = async (box, sandboxId) => {
    const { run } = box.record;
    if (run === null) return;
    const sandbox = await account.sandbox(sandboxId);
    const tunnels = await account.ask("read the tunnels", () => sandbox.tunnels());
    const addressAt = (port: number): Address | null => {
      const tunnel = tunnels[port];
      return tunnel === undefined ? null : { host: tunnel.host, port: tunnel.port };
    };
    const previews = previewPorts(box.record.request).flatMap(({ port, publicPort }) => {
      const address = addressAt(publicPort);
      return address === null ? [] : [[String(port), address] as const];
    });
    const link = addressAt(linkPort);
    const startedAt = run.startedAt ?? (await account.times(run.name))?.startedAt ?? null;
    boxes.update(box, { run: { ...run, sandboxId, startedAt, link, previews: Object.fromEntries(previews) } });
    links.changed(box.id);
  };
  const keep: Runs["keep"] = (box, signal) =>
    links.get(box.record).keepUntil(box.record.expiresAt + graceMs, { signal });

  const untilReady = async (box: Box<SandboxRecord>, sandboxId: string, signal: AbortSignal) => {
    const deadline = clock.now() + startLimitMs;
    for (;;) {
      try {
        return await keep(box, signal);
      } catch (error) {
        throwIfAborted(signal);
        if (!hasCode(error, "provider_unavailable") || clock.now() > deadline) throw error;
        const exitCode = await account.exitCode(sandboxId);
        if (exitCode === null) continue;
        const how = exitCode === undefined ? "is gone" : `ended with exit code ${exitCode}`;
        throw new SlipwayError("sandbox_start_failed", `The sandbox at Modal ${how} before it answered.`, {
          cause: error,
        });
      }
    }
  };

  return {
    plan: (id) => ({
      name: `${id}-${randomBytes(4).toString("hex")}`,
      sandboxId: null,
      askedAt: clock.now(),
      startedAt: null,
      link: null,
      previews: {},
    }),
    async start(box, signal) {
      const { run } = box.record;
      if (run === null) throw new SlipwayError("internal", `No start of ${box.id} is planned.`);
      const fitted = await images.fit(box.record, box.record.tools, { signal });
      boxes.update(box, fitted);
      await slots.take(run.name, signal);
      const programs = await store.programs();
      const params = paramsOf({ ...parts, record: box.record, run, programs });
      const sandbox = await account.create(fitted.imageId, params, signal).catch((error: unknown) => {
        if (hasCode(error, "snapshot_expired")) images.forget(fitted.imageId);
        throw error;
      });
      throwIfAborted(signal);
      await found(box, sandbox.sandboxId);
      await untilReady(box, sandbox.sandboxId, signal);
      boxes.update(box, { environment: await readEnvironment(links.get(box.record).dial, signal) });
    },
    async end({ id, record: { run } }) {
      links.drop(id);
      if (run === null) return;
      const sandboxId = run.sandboxId ?? (await account.find(run.name))?.sandboxId;
      if (sandboxId !== undefined) await account.terminate(sandboxId);
      slots.release(run.name);
      // Without it, it ended now.
      const endedAt = (await account.times(run.name).catch(() => undefined))?.endedAt;
      if (endedAt != null) ends.set(id, endedAt);
    },
    takeEnd(id) {
      const endedAt = ends.get(id);
      ends.delete(id);
      return endedAt;
    },
    found,
    keep,
    async handle({ id, record: { run } }) {
      if (run?.sandboxId == null) throw new SlipwayError("sandbox_not_running", `${id} does not run at Modal.`);
      return await account.sandbox(run.sandboxId);
    },
  };
}

/** Root has written it, so that it is what the image says. */
async function readEnvironment(dial: Dial, signal: AbortSignal): Promise<Record<string, string>> {
  const files = createFiles({ dial, workdir: "/" });
  const told = Buffer.from(await readBytes(files, inside.environment, { signal })).toString();
  const pairs = told.split("\0").filter((pair) => pair.includes("="));
  return Object.fromEntries(pairs.map((pair) => [pair.slice(0, pair.indexOf("=")), pair.slice(pair.indexOf("=") + 1)]));
}
