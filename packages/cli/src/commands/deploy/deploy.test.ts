import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { SlipwayError } from "@slipway/contract";
import { afterAll, describe, expect, test } from "vitest";
import type { HostFinding } from "../../input/command.ts";
import { runCli } from "../../testing/run-cli.ts";
import { createStubProvider } from "../../testing/stub-provider.ts";

const stateDir = mkdtempSync(join(tmpdir(), "slipway-deploy-"));
afterAll(() => rmSync(stateDir, { recursive: true }));

const env = { MODAL_TOKEN_ID: "ak-1", MODAL_TOKEN_SECRET: "as-hidden", SLIPWAY_STATE_DIR: stateDir, NO_COLOR: "1" };
const account: HostFinding = { name: "modal account", status: "ok", detail: "takes the credentials" };
const findings = { modal: [account] };
const snapshots = { list: async () => [] } as never;

describe("before anything is made", () => {
  test("missing credentials are named", async () => {
    const { code, stderr } = await runCli(["deploy", "modal"], { findings });
    expect(code).toBe(125);
    expect(stderr).toMatch(/MODAL_TOKEN_ID and MODAL_TOKEN_SECRET are not set.*code: invalid_settings/s);
  });

  test("all wrong settings are named", async () => {
    const { stderr } = await runCli(["deploy", "modal"], {
      env: { ...env, MODAL_MAX_CONCURRENT: "0", MODAL_API_BASE: "x" },
    });
    expect(stderr).toMatch(/2 settings are wrong:.*MODAL_MAX_CONCURRENT.*code: invalid_settings/s);
  });

  test("an account that is refused ends it, with what to do", async () => {
    const refused: HostFinding = {
      ...account,
      status: "fail",
      detail: "refuses the credentials",
      action: "Set others.",
    };
    const given = { env, findings: { modal: [refused] } };
    expect(await runCli(["deploy", "modal"], given)).toMatchObject({
      code: 1,
      stdout: "modal account: refuses the credentials\n  what to do: Set others.\n",
      stderr: "Nothing was made.\n",
    });
    const { code, stdout } = await runCli(["deploy", "modal", "--json"], given);
    expect({ code, ...JSON.parse(stdout) }).toMatchObject({
      code: 1,
      deployed: false,
      failed: "check",
      findings: [refused],
    });
  });

  test("a dry run says what is done and what it costs, and opens no provider", async () => {
    const { code, stdout, stderr } = await runCli(["deploy", "modal", "--dry-run"], { env, findings });
    expect(code).toBe(0);
    expect(stdout).toMatch(/^1\. use the app slipway at https:\/\/api\.modal\.com:443/);
    expect(stdout).toMatch(
      /\n6\. end both sandboxes and delete the snapshot; keep the image\ncost: at most 0\.0871 USD/,
    );
    expect(stdout + stderr).not.toContain("hidden");
    const json = await runCli(["deploy", "modal", "--dry-run", "--json"], { env, findings });
    expect(JSON.parse(json.stdout)).toMatchObject({ dryRun: true, app: "slipway", ceilingMicroUsd: 87_144 });
  });
});

test("an image that does not build is told with its code, and the account counts as not deployed", async () => {
  const prepareImage = async () => {
    throw new SlipwayError("image_build_failed", "apt-get: no such package");
  };
  const provider = createStubProvider({ prepareImage, snapshots });
  const { code, stdout, stderr } = await runCli(["deploy", "modal"], { env, findings, provider });
  expect(code).toBe(1);
  expect(stdout).toMatch(/^failed: +image: apt-get: no such package\n/);
  expect(stderr).toContain("Not deployed, and nothing is left of it.");
  const json = await runCli(["deploy", "modal", "--json"], { env, findings, provider });
  expect(JSON.parse(json.stdout)).toMatchObject({ failed: "image", error: { code: "image_build_failed" }, left: [] });
  expect(existsSync(join(stateDir, "deployed-modal.json"))).toBe(false);
});

test("what could not be removed has an exit code of its own", async () => {
  const broken = async () => {
    throw new SlipwayError("provider_unavailable", "the wire was cut");
  };
  const provider = createStubProvider({ prepareImage: broken, list: broken, snapshots });
  const { code, stderr } = await runCli(["deploy", "modal"], { env, findings, provider });
  expect(code).toBe(2);
  expect(stderr).toContain("Not removed: sandboxes that were not found (the wire was cut).");
});
