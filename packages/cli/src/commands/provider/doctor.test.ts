import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import type { HostFinding } from "../../input/command.ts";
import { runCli } from "../../testing/run-cli.ts";
import { createStubServer } from "../../testing/stub-server.ts";

const fine: HostFinding = { name: "bubblewrap", status: "ok", detail: "0.8.0" };
const slow: HostFinding = { name: "cgroups", status: "warn", detail: "not writable", action: "Delegate a cgroup." };
const broken: HostFinding = { name: "cc", status: "fail", detail: "not found", action: "Install gcc." };

test("findings are shown with what to do about those that are not ok", async () => {
  const { code, stdout } = await runCli(["doctor"], { findings: { local: [fine, slow] } });
  expect(code).toBe(0);
  expect(stdout).toMatch(/^ok {4}settings: state directory/);
  expect(stdout).toContain("ok    bubblewrap: 0.8.0\n");
  expect(stdout).toContain("warn  cgroups: not writable\n      what to do: Delegate a cgroup.\n");
});

test("a failed finding exits with 1", async () => {
  const { code, stdout, stderr } = await runCli(["doctor"], { findings: { local: [fine, broken] } });
  expect(code).toBe(1);
  expect(stdout).toContain("fail  cc: not found\n      what to do: Install gcc.\n");
  expect(stderr).toContain("cannot run here");
});

test("--json prints one document", async () => {
  const { code, stdout } = await runCli(["doctor", "--json"], { findings: { local: [broken] } });
  expect(code).toBe(1);
  const { healthy, findings } = JSON.parse(stdout);
  expect(healthy).toBe(false);
  expect(findings.slice(0, 3)).toMatchObject([{ name: "settings" }, { name: "provider" }, broken]);
});

test("agents are listed, with what installs those that are not there", async () => {
  const agents = await mkdtemp(join(tmpdir(), "slipway-agents-"));
  try {
    await mkdir(join(agents, "opencode"));
    await mkdir(join(agents, "ours"));
    const description = { command: ["ours"], environment: { URL: "{base_url}", API_KEY: "{token}" } };
    await writeFile(join(agents, "ours", "agent.json"), JSON.stringify(description));
    const { code, stdout } = await runCli(["doctor"], { env: { SLIPWAY_AGENTS: agents } });
    expect(code).toBe(0);
    expect(stdout).toContain("ok    agent acp:opencode: installed\n");
    expect(stdout).toContain("ok    agent acp:ours: installed\n");
    const install = `npm install --prefix ${agents}/claude-code @anthropic-ai/claude-code`;
    expect(stdout).toContain(`ok    agent claude-code: not installed; to install it: ${install}\n`);
    await writeFile(join(agents, "ours", "agent.json"), "{}");
    const wrong = await runCli(["doctor"], { env: { SLIPWAY_AGENTS: agents } });
    expect(wrong.code).toBe(1);
    expect(wrong.stdout).toMatch(/^fail {2}settings: .*ours\/agent\.json: command: /);
  } finally {
    await rm(agents, { recursive: true });
  }
});

test("of a server that runs, each provider of models that was used has a line", async () => {
  const usage = { input: 1000, output: 50, cacheRead: 0, cacheWrite: 0 };
  const ends = { complete: 11, truncated: 0, cut: 0, failed: 1 };
  const none = { complete: 0, truncated: 0, cut: 0, failed: 0 };
  const common = { inFlight: 0, retries: 0, microUsd: 0, usage };
  const server = createStubServer([], {}, [
    { ...common, provider: "anthropic", requests: 13, inFlight: 1, ends, retries: 2, microUsd: 1_234_500 },
    { ...common, provider: "ollama", requests: 1, ends: { ...none, failed: 1 }, lastErrorCode: "missing_key" },
    { ...common, provider: "openai", requests: 0, ends: none },
  ]);
  const { code, stdout } = await runCli(["doctor"], { server });
  expect(code).toBe(0);
  expect(stdout).toContain("ok    server: process 1, version 0.0.0\n");
  expect(stdout).toMatch(/ok {4}models of anthropic: 13 requests, 1 open, 1 failed, 2 retried, .*1\.23.*\n/);
  expect(stdout).toMatch(/warn {2}models of ollama: 1 request, 1 failed, .*; last failure: missing_key\n/);
  expect(stdout).not.toContain("models of openai");
});

test("wrong settings are a finding", async () => {
  const { code, stdout } = await runCli(["doctor"], { env: { SANDBOX_PREVIEW_PORT: "x" } });
  expect(code).toBe(1);
  expect(stdout).toMatch(/^fail {2}settings: One setting is wrong: - SANDBOX_PREVIEW_PORT/);
});

describe("the provider in use", () => {
  const credentials = { MODAL_TOKEN_ID: "ak-1", MODAL_TOKEN_SECRET: "as-hidden" };
  const account: HostFinding = { name: "modal account", status: "ok", detail: "answered in 3 ms" };
  const refused: HostFinding = { ...account, status: "fail", detail: "refuses the credentials", action: "Set others." };
  const git: HostFinding = { name: "git", status: "warn", detail: "not found", action: "Install git." };

  test("is told with the reason, and what the other one lacks is no failure", async () => {
    const { code, stdout } = await runCli(["doctor"], { findings: { local: [fine], modal: [refused] } });
    expect(code).toBe(0);
    expect(stdout).toContain("ok    provider: local: neither SANDBOX_PROVIDER nor Modal's credentials are set\n");
    expect(stdout).toContain("ok    provider modal: not in use; missing: modal account: refuses the credentials\n");
  });

  test("is modal with its credentials, of which nothing is shown", async () => {
    const findings = { local: [broken, git], modal: [account] };
    for (const json of [[], ["--json"]]) {
      const { code, stdout, stderr } = await runCli(["doctor", ...json], { env: credentials, findings });
      expect(code).toBe(0);
      expect(stdout + stderr).not.toContain("hidden");
    }
    const { stdout } = await runCli(["doctor"], { env: credentials, findings });
    expect(stdout).toContain("ok    provider: modal: Modal's credentials are set and SANDBOX_PROVIDER is not\n");
    expect(stdout).toContain("ok    provider local: not in use; missing: cc: not found\n");
    expect(stdout).toContain("ok    modal account: answered in 3 ms\n");
    expect(stdout).toContain("warn  git: not found\n");
  });

  test("that does not work fails, and another one that would is told", async () => {
    const findings = { local: [fine], modal: [refused] };
    const { code, stdout } = await runCli(["doctor"], { env: { ...credentials, SANDBOX_PROVIDER: "modal" }, findings });
    expect(code).toBe(1);
    expect(stdout).toContain("ok    provider: modal: SANDBOX_PROVIDER is modal\n");
    expect(stdout).toContain("fail  modal account: refuses the credentials\n      what to do: Set others.\n");
    expect(stdout).toContain("not in use; nothing is missing for it: SANDBOX_PROVIDER=local\n");
  });
});
