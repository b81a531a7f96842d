import { readdirSync } from "node:fs";
import { SlipwayError } from "@slipway/contract";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { OwnedSandbox, SandboxProvider } from "../provider.ts";
import { layoutOf } from "../providers/local/layout.ts";
import { type LocalSetup, setUpLocal } from "../providers/local/testing.ts";
import { type DeployStep, deploy, deploySteps } from "./deploy.ts";

let local: LocalSetup;
beforeAll(() => {
  local = setUpLocal();
});
afterAll(async () => await local?.[Symbol.asyncDispose]());

/** What a deploy can leave behind. */
async function traces() {
  await local.provider.reconcile();
  const { boxes, layers } = layoutOf(local.stateDir);
  const snapshots = await local.provider.snapshots.list();
  return {
    sandboxes: (await local.provider.list()).length,
    boxes: readdirSync(boxes),
    layers: readdirSync(layers).sort(),
    snapshots: snapshots.map(({ id }) => id),
  };
}

let images = 0;
/** One that was never built. */
const newImage = () => ({ commands: [`echo ${images++} > /usr/local/number 2>/dev/null || true`] });

const broken = () => {
  throw new SlipwayError("provider_unavailable", "the wire was cut");
};

/** The local provider, with one operation that fails, after it has been carried out where that is possible. */
function failingAt(step: DeployStep): SandboxProvider {
  const { provider } = local;
  let creates = 0;
  const sandboxOf = (sandbox: OwnedSandbox): OwnedSandbox =>
    replace(sandbox, {
      ...(step === "exec" && { exec: broken }),
      ...(step === "files" && { files: replace(sandbox.files, { read: broken }) }),
      ...(step === "preview" && { previewUrl: broken }),
      ...(step === "snapshot" && { snapshot: (given) => sandbox.snapshot(given).then(broken) }),
    });
  return replace(provider, {
    async prepareImage(image, options) {
      const built = await provider.prepareImage(image, options);
      return step === "image" ? broken() : built;
    },
    async create(input, options) {
      const sandbox = await provider.create(input, options);
      creates++;
      if ((step === "create" && creates === 1) || (step === "restore" && creates === 2)) broken();
      return sandboxOf(sandbox);
    },
  });
}

function replace<T extends object>(target: T, parts: Partial<T>): T {
  return new Proxy(target, { get: (object, key) => Reflect.get(key in parts ? parts : object, key) });
}

describe("a deploy", () => {
  test("proves the provider step by step, tells where the sandbox was seen, and leaves only the image", async () => {
    const image = newImage();
    const before = await traces();
    const begun: string[] = [];
    const { failure, ...done } = await deploy(local.provider, { image, onStep: (step) => begun.push(step) });
    expect(failure).toBeUndefined();
    expect(begun).toEqual(deploySteps);
    expect(done.measured.map(({ step }) => step)).toEqual(deploySteps);
    expect(done).toMatchObject({ left: [], previewOrigin: expect.stringMatching(/^http:\/\/127\.0\.0\.1:\d+$/) });
    expect(done.sandboxMs).toBeGreaterThan(0);
    expect(done.measured[0]).toMatchObject({ detail: "built" });
    const after = await traces();
    expect(after).toMatchObject({ sandboxes: 0, boxes: before.boxes, snapshots: [] });
    expect(after.layers.length).toBeGreaterThan(before.layers.length);

    const again = await deploy(local.provider, { image });
    expect(again.measured[0]).toMatchObject({ detail: "was there already" });
    expect(await traces()).toEqual(after);
  });

  test.each(deploySteps.filter((step) => step !== "clean-up" && step !== "image"))(
    "that fails at %s says so with its code, and takes everything back",
    async (step) => {
      const before = await traces();
      const { failure, left, measured } = await deploy(failingAt(step), { image: newImage() });
      expect(failure).toMatchObject({ step, error: { code: "provider_unavailable", message: "the wire was cut" } });
      expect(left).toEqual([]);
      expect(measured.at(-1)).toMatchObject({ step: "clean-up", detail: "nothing is left" });
      expect(await traces()).toEqual(before);
    },
  );

  test("that fails with an image that was there keeps that image", async () => {
    const image = newImage();
    await local.provider.prepareImage(image);
    const before = await traces();
    expect((await deploy(failingAt("exec"), { image })).failure).toMatchObject({ step: "exec" });
    expect(await traces()).toEqual(before);
  });

  test("of an image that does not build makes nothing", async () => {
    const before = await traces();
    const { failure, left } = await deploy(local.provider, { image: { commands: ["exit 3"] } });
    expect(failure).toMatchObject({ step: "image", error: { code: "image_build_failed" } });
    expect(left).toEqual([]);
    expect(await traces()).toEqual(before);
  });

  test("that is interrupted takes everything back", async () => {
    const controller = new AbortController();
    const before = await traces();
    const onStep = (step: DeployStep) => void (step === "snapshot" && controller.abort());
    const { failure } = await deploy(local.provider, { image: newImage(), signal: controller.signal, onStep });
    expect(failure).toMatchObject({ step: "snapshot", error: { code: "aborted" } });
    expect(await traces()).toEqual(before);
  });

  test("names what it could not remove", async () => {
    const kept: OwnedSandbox[] = [];
    const provider = replace(local.provider, {
      async create(input, options) {
        const sandbox = await local.provider.create(input, options);
        kept.push(sandbox);
        return replace(sandbox, { exec: broken });
      },
      get: async (id) => replace(await local.provider.get(id), { destroy: broken }),
    });
    const { failure, left } = await deploy(provider);
    expect(failure).toMatchObject({ step: "exec" });
    expect(left).toEqual([`sandbox ${kept[0]?.id} (the wire was cut)`]);
    for (const sandbox of kept) await sandbox.destroy();
  });
});
