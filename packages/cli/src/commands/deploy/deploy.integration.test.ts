import { chmodSync, mkdtempSync, rmSync } from "node:fs";
import { join } from "node:path";
import type { SandboxProvider } from "@slipway/sandbox";
import { findDeployment } from "@slipway/sandbox/deploy";
import { openProvider } from "@slipway/sandbox/open";
import { deployTarget, readSandboxSettings } from "@slipway/sandbox/settings";
import { afterAll, beforeAll, expect, test } from "vitest";
import { runCli } from "../../testing/run-cli.ts";

let scratch: string;
let provider: SandboxProvider;
beforeAll(async () => {
  scratch = mkdtempSync("/var/tmp/slipway-deploy-");
  chmodSync(scratch, 0o711);
  provider = await openProvider({ stateDir: join(scratch, "state"), environment: process.env });
});
afterAll(async () => {
  await provider?.[Symbol.asyncDispose]();
  rmSync(scratch, { recursive: true, force: true, maxRetries: 10 });
});

test("a deploy tells what it measured and the address, and is remembered", async () => {
  const env = { MODAL_API_TOKEN: "ak-1:as-hidden", SLIPWAY_STATE_DIR: join(scratch, "state"), NO_COLOR: "1" };
  // The local provider stands for the port: nothing here is Modal's.
  const options = { env, provider, findings: { modal: [] } };
  const { code, stdout, stderr } = await runCli(["deploy", "modal"], options);
  expect({ code, stderr }).toMatchObject({
    code: 0,
    stderr: expect.stringMatching(/^image: was there.*\ncreate: sbx_/),
  });
  expect(stdout).toMatch(/^create: +sbx_\w+ \(\d+ms\)$/m);
  expect(stdout).toMatch(/^files: +8 MiB there and back, [\d.]+ MiB\/s/m);
  expect(stdout).toMatch(/^restore: +sbx_\w+ has the files/m);
  expect(stdout).toMatch(/^tunnel: +http:\/\/127\.0\.0\.1:\d+$/m);
  expect(stdout).toMatch(/^cost: +0\.\d+ USD for the test sandboxes$/m);
  expect(stdout + stderr).not.toContain("hidden");
  expect(await provider.list()).toEqual([]);

  const { modal } = readSandboxSettings(env).settings;
  const target = modal === undefined ? "" : deployTarget(modal);
  expect(await findDeployment(join(scratch, "state"), "modal", target)).toMatchObject({ at: expect.any(Number) });
  expect(await findDeployment(join(scratch, "state"), "modal", `${target}-2`)).toBeNull();
});
