import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { serverFiles } from "@slipway/contract";
import { afterAll, expect, test } from "vitest";
import { changedSettings, noteSettings } from "./started-with.ts";

const stateDir = mkdtempSync(join(tmpdir(), "slipway-started-"));
afterAll(() => rmSync(stateDir, { recursive: true }));

test("a server that was started with another provider or account is noticed, and its note has no credential", async () => {
  const environment = { MODAL_TOKEN_ID: "ak-1", MODAL_TOKEN_SECRET: "as-hidden", SLIPWAY_MODAL_REGIONS: "us-east" };
  await noteSettings({ stateDir, environment }, 7);
  expect(readFileSync(join(stateDir, serverFiles.settings), "utf8")).not.toMatch(/ak-1|hidden/);
  const changed = (more: Record<string, string>) =>
    changedSettings({ stateDir, environment: { ...environment, ...more } }, 7);
  expect(await changed({})).toEqual([]);
  expect(await changed({ SANDBOX_PROVIDER: "local" })).toEqual(["SANDBOX_PROVIDER"]);
  expect(await changed({ MODAL_TOKEN_SECRET: "as-2", MODAL_API_BASE: "https://m.example", HOME: "/x" })).toEqual([
    "MODAL_TOKEN_SECRET",
    "MODAL_API_BASE",
  ]);
  expect(await changed({ SLIPWAY_MODAL_REGIONS: "eu-west" })).toEqual(["SLIPWAY_MODAL_REGIONS"]);
});
