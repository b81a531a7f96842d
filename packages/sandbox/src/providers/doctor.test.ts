import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, expect, test } from "vitest";
import { findDeployment, keepDeployment } from "../deploy/record.ts";
import { inspectProvider } from "./doctor.ts";
import { deployTarget, readSandboxSettings } from "./settings.ts";

const stateDir = mkdtempSync(join(tmpdir(), "slipway-doctor-"));
afterAll(() => rmSync(stateDir, { recursive: true }));

const settingsOf = (more: Record<string, string> = {}) =>
  readSandboxSettings({ MODAL_API_TOKEN: "ak-1:as-hidden", MODAL_API_BASE: "http://127.0.0.1:1", ...more }).settings;

test("modal without credentials is told with the names of the settings", async () => {
  expect(await inspectProvider("modal", { modal: undefined, stateDir, environment: {} })).toMatchObject([
    { status: "fail", detail: "MODAL_TOKEN_ID and MODAL_TOKEN_SECRET are not set" },
  ]);
});

test("a deploy is remembered for its account, environment and app alone, without a credential", async () => {
  const { modal } = settingsOf();
  const image = async (more?: Record<string, string>) => {
    const findings = await inspectProvider("modal", { modal: settingsOf(more).modal, stateDir, environment: {} });
    return findings.find(({ name }) => name === "modal image");
  };
  expect(await image()).toMatchObject({ status: "warn", action: expect.stringContaining("slipway deploy modal") });
  if (modal === undefined) throw new Error("there are no credentials");
  expect(deployTarget(modal)).not.toMatch(/ak-1|hidden/);
  await keepDeployment(stateDir, "modal", { at: 0, target: deployTarget(modal) });
  expect(await image()).toMatchObject({ status: "ok", detail: "deployed on 1970-01-01T00:00:00.000Z" });
  expect(await image({ MODAL_SANDBOX_APP: "other" })).toMatchObject({ status: "warn" });
  expect(await findDeployment(join(stateDir, "elsewhere"), "modal", deployTarget(modal))).toBeNull();
});
