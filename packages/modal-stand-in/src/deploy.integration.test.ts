import { mkdtempSync, rmSync } from "node:fs";
import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { SlipwayError } from "@slipway/contract";
import type { SandboxProvider } from "@slipway/sandbox";
import { type DeployOptions, deploy } from "@slipway/sandbox/deploy";
import { inspectProvider } from "@slipway/sandbox/doctor";
import { openProvider } from "@slipway/sandbox/open";
import { readSandboxSettings } from "@slipway/sandbox/settings";
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import { type ModalStandIn, startModalStandIn } from "./stand-in.ts";

// Two images are built.
vi.setConfig({ testTimeout: 400_000 });

const directory = mkdtempSync("/var/tmp/slipway-deploy-modal-");
const stateDir = join(directory, "state");
let standIn: ModalStandIn;
let provider: SandboxProvider;
let options: DeployOptions;

const settingsOf = (more: Readonly<Record<string, string>> = {}) =>
  readSandboxSettings({ ...standIn.environment, SLIPWAY_MODAL_TUNNEL_CA: standIn.caFile, ...more }).settings;

beforeAll(async () => {
  standIn = await startModalStandIn();
  const settings = settingsOf();
  options = { tunnelCa: settings.modal?.tunnelCa };
  provider = await openProvider({ ...settings, stateDir, environment: process.env });
});
afterAll(async () => {
  await provider?.[Symbol.asyncDispose]();
  // A keeper without sandboxes and callers leaves by itself.
  await vi.waitFor(async () => expect(await keepers()).toEqual([]), { timeout: 60_000 });
  await standIn?.[Symbol.asyncDispose]();
  rmSync(directory, { recursive: true, force: true, maxRetries: 10 });
});

async function keepers(): Promise<string[]> {
  const pids = (await readdir("/proc")).filter((name) => /^\d+$/.test(name));
  const titles = await Promise.all(pids.map((pid) => readFile(`/proc/${pid}/cmdline`, "utf8").catch(() => "")));
  return titles.filter((title) => title.startsWith(`slipway-keeper ${directory}`));
}

describe("on the stand-in for Modal, through Modal's own client", () => {
  test("a deploy that fails takes back the image that it has built, and the next one builds it again", async () => {
    const snapshot = () => Promise.reject(new SlipwayError("provider_unavailable", "the wire was cut"));
    const failing = new Proxy(provider, {
      get: (object, key) =>
        key === "create"
          ? async (...given: Parameters<SandboxProvider["create"]>) =>
              Object.assign(await object.create(...given), { snapshot })
          : Reflect.get(object, key),
    });
    const { failure, left, measured } = await deploy(failing, options);
    expect(failure).toMatchObject({ step: "snapshot", error: { code: "provider_unavailable" } });
    expect({ left, image: measured[0]?.detail, running: standIn.running() }).toEqual({
      left: [],
      image: "built",
      running: [],
    });
  });

  test("a deploy proves the account through a tunnel, and leaves nothing running", async () => {
    const { failure, left, measured, previewOrigin } = await deploy(provider, options);
    expect(failure).toBeUndefined();
    expect({ left, image: measured[0]?.detail }).toEqual({ left: [], image: "built" });
    expect(previewOrigin).toMatch(/^https:\/\//);
    expect(standIn.running()).toEqual([]);
    expect(await provider.snapshots.list()).toEqual([]);
    expect((await deploy(provider, options)).measured[0]).toMatchObject({ detail: "was there already" });
  });
});

test("the doctor reaches the account, and a wrong token is refused there", async () => {
  const inspect = async (more: Readonly<Record<string, string>>) =>
    await inspectProvider("modal", { modal: settingsOf(more).modal, stateDir, environment: {} });
  expect((await inspect({})).map(({ name, status }) => [name, status])).toEqual([
    ["modal account", "ok"],
    ["modal clock", "ok"],
    ["modal workspace", "ok"],
    ["modal app", "ok"],
    ["modal image", "warn"],
  ]);
  expect(await inspect({ MODAL_TOKEN_SECRET: "as-wrong" })).toMatchObject([
    { status: "fail", detail: expect.stringMatching(/refuses the cred/) },
    { name: "modal image" },
  ]);
});
