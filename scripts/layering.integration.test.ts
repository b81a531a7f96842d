import { execFile } from "node:child_process";
import { copyFile, mkdir, mkdtemp, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, it } from "vitest";

const root = fileURLToPath(new URL("..", import.meta.url));
const packages = [
  "contract",
  "engine",
  "sandbox",
  "host",
  "gateway",
  "runner",
  "agent-host",
  "store",
  "server",
  "client",
  "cli",
  "web",
];

interface Violation {
  rule: string;
  from: string;
}

/** A small tree that keeps every rule, and uses what the rules allow. */
const clean: Record<string, string> = {
  "packages/contract/src/index.ts": `import { z } from "zod"; export const id = z.string();`,
  "packages/contract/src/index.test.ts": `import { test } from "vitest"; import "node:fs"; import "./index.ts"; test("", () => {});`,
  "packages/engine/src/index.ts": `export * from "./pipeline.ts";`,
  "packages/engine/src/pipeline.ts": `import { plan } from "./plan/run.ts"; import { build } from "./build/run.ts"; export const stages = [plan, build];`,
  "packages/engine/src/ports/clock.ts": `export interface Clock { now(): number }`,
  "packages/engine/src/plan/decide.ts": `import { id } from "@slipway/contract"; import type { Clock } from "../ports/clock.ts"; import { order } from "./order.ts"; export const decide = (clock: Clock) => [id, order, clock];`,
  "packages/engine/src/plan/order.ts": `import { sep } from "node:path"; export const order = sep;`,
  "packages/engine/src/plan/run.ts": `import { createHash } from "node:crypto"; import { decide } from "./decide.ts"; export const plan = [createHash, decide];`,
  "packages/engine/src/build/run.ts": `import type { Provider } from "@slipway/sandbox"; export const build: Provider[] = [];`,
  "packages/sandbox/src/index.ts": `export type { Provider } from "./provider.ts";`,
  "packages/sandbox/src/provider.ts": `export interface Provider { name: string }`,
  "packages/sandbox/src/providers/local/index.ts": `import "node:fs"; import type { Provider } from "../../provider.ts"; export const local: Provider = { name: "local" };`,
  "packages/host/src/index.ts": `import "node:fs"; import { id } from "@slipway/contract"; export const lock = id;`,
  "packages/gateway/src/index.ts": `import { id } from "@slipway/contract"; import { lock } from "@slipway/host"; export const gateway = [id, lock];`,
  "packages/runner/src/index.ts": `export const agents = [];`,
  "packages/runner/src/main.ts": `import { id } from "@slipway/contract"; export const runner = id;`,
  "packages/agent-host/src/index.ts": `import "@slipway/runner"; import type { gateway } from "@slipway/gateway"; import type { Provider } from "@slipway/sandbox"; export type Start = [typeof gateway, Provider];`,
  "packages/store/src/index.ts": `export const store = 1;`,
  "packages/server/src/index.ts": `export * from "./compose.ts";`,
  "packages/server/src/compose.ts": `import "@slipway/engine"; import "@slipway/store"; import "./http/app.ts"; import "./drive/turns.ts";`,
  "packages/server/src/http/app.ts": `import "../faces/builds.ts";`,
  "packages/server/src/faces/builds.ts": `import "../work/gates.ts";`,
  "packages/server/src/work/gates.ts": `export const gates = 1;`,
  "packages/server/src/drive/turns.ts": `export const turns = 1;`,
  "packages/client/src/index.ts": `import { id } from "@slipway/contract"; export const client = id;`,
  "packages/cli/src/index.ts": `import "@slipway/client"; import "@slipway/contract"; import "@slipway/sandbox/local"; import "@slipway/gateway";`,
  "packages/web/src/index.ts": `import "@slipway/client"; import "@slipway/contract";`,
  "bench/main.ts": `import "@slipway/sandbox";`,
};

/** What breaks each rule, at least once, as a file added to the clean tree. */
const planted: { rule: string; from: string; code: string }[] = [
  {
    rule: "contract-imports-only-zod",
    from: "packages/contract/src/a.ts",
    code: `export type E = import("@slipway/sandbox").Provider;`,
  },
  { rule: "contract-imports-only-zod", from: "packages/contract/src/b.ts", code: `import "node:path";` },
  { rule: "contract-imports-only-zod", from: "packages/contract/src/c.ts", code: `import "vitest";` },
  {
    rule: "stages-meet-in-pipeline",
    from: "packages/engine/src/plan/a.ts",
    code: `import type { build } from "../build/run.ts"; export type B = typeof build;`,
  },
  { rule: "stages-meet-in-pipeline", from: "packages/engine/src/other.ts", code: `import "./plan/run.ts";` },
  { rule: "stages-meet-in-pipeline", from: "packages/engine/src/ports/a.ts", code: `import "../plan/run.ts";` },
  { rule: "engine-knows-no-adapters", from: "packages/engine/src/a.ts", code: `import "@slipway/store";` },
  { rule: "engine-knows-no-adapters", from: "packages/engine/src/b.ts", code: `import "@slipway/server";` },
  { rule: "engine-knows-no-adapters", from: "packages/engine/src/c.ts", code: `import "@slipway/sandbox/local";` },
  { rule: "engine-does-no-io", from: "packages/engine/src/merge/a.ts", code: `import "node:fs/promises";` },
  {
    rule: "engine-does-no-io",
    from: "packages/engine/src/merge/b.ts",
    code: `export async function f() { await using x = await import("node:net"); return x; }`,
  },
  { rule: "decisions-are-pure", from: "packages/engine/src/merge/decide.ts", code: `import "node:crypto";` },
  { rule: "decisions-are-pure", from: "packages/engine/src/preview/decide.ts", code: `import "./run.ts";` },
  { rule: "decisions-are-pure", from: "packages/sandbox/src/providers/docker/decide.ts", code: `import "zod";` },
  { rule: "decisions-are-pure", from: "packages/sandbox/src/keeper/decide.ts", code: `import "../provider.ts";` },
  { rule: "decisions-reach-no-io", from: "packages/sandbox/src/queue/decide.ts", code: `import "./side.ts";` },
  {
    rule: "providers-do-not-know-each-other",
    from: "packages/sandbox/src/providers/docker/index.ts",
    code: `import "../local/index.ts";`,
  },
  {
    rule: "providers-do-not-know-each-other",
    from: "packages/sandbox/src/providers/modal/index.ts",
    code: `import "@slipway/sandbox/local";`,
  },
  { rule: "client-uses-contract", from: "packages/client/src/a.ts", code: `import "@slipway/server";` },
  { rule: "web-uses-client-and-contract", from: "packages/web/src/a.tsx", code: `import "@slipway/sandbox";` },
  {
    rule: "runner-knows-contract",
    from: "packages/runner/src/agents/a.ts",
    code: `import type { Start } from "@slipway/agent-host"; export type S = Start;`,
  },
  { rule: "runner-knows-contract", from: "packages/runner/src/b.ts", code: `import "@slipway/gateway";` },
  { rule: "agent-host-knows-what-runs", from: "packages/agent-host/src/a.ts", code: `import "@slipway/store";` },
  { rule: "http-knows-faces", from: "packages/server/src/http/a.ts", code: `import "../work/gates.ts";` },
  { rule: "faces-know-no-http", from: "packages/server/src/faces/a.ts", code: `import "../http/app.ts";` },
  {
    rule: "work-knows-neither-faces-nor-drive",
    from: "packages/server/src/work/a.ts",
    code: `import "../faces/builds.ts";`,
  },
  {
    rule: "work-knows-neither-faces-nor-drive",
    from: "packages/server/src/work/b.ts",
    code: `import "../drive/turns.ts";`,
  },
  { rule: "wiring-is-on-top", from: "packages/server/src/drive/a.ts", code: `import "../compose.ts";` },
  { rule: "dependencies-are-declared", from: "packages/store/src/f.ts", code: `import "zod";` },
  { rule: "host-knows-contract", from: "packages/host/src/a.ts", code: `import "@slipway/gateway";` },
  { rule: "gateway-knows-no-sandbox", from: "packages/gateway/src/a.ts", code: `import "@slipway/sandbox";` },
  {
    rule: "cli-uses-client-contract-and-what-runs-agents",
    from: "packages/cli/src/a.ts",
    code: `import "@slipway/server";`,
  },
  { rule: "nothing-imports-cli", from: "packages/server/src/a.ts", code: `import "@slipway/cli";` },
  { rule: "packages-by-name", from: "packages/server/src/b.ts", code: `import "../../store/src/index.ts";` },
  { rule: "packages-by-name", from: "bench/a.ts", code: `import "../packages/store/src/index.ts";` },
  { rule: "tests-stay-out", from: "packages/store/src/a.ts", code: `import "./a.test.ts";` },
  { rule: "tests-stay-out", from: "packages/store/src/e.ts", code: `import "./testing.ts";` },
  { rule: "no-cycles", from: "packages/store/src/b.ts", code: `import "./c.ts";` },
  { rule: "imports-resolve", from: "packages/store/src/d.ts", code: `import "./missing.ts";` },
  { rule: "imports-resolve", from: "packages/cli/src/b.ts", code: `import "@slipway/sandbox/src/provider.ts";` },
];

/** Files the planted ones need. */
const beside: Record<string, string> = {
  "packages/engine/src/preview/run.ts": "export const preview = 1;",
  "packages/sandbox/src/queue/side.ts": `import "node:child_process";`,
  "packages/store/src/a.test.ts": "export const a = 1;",
  "packages/store/src/testing.ts": "export const testing = 1;",
  "packages/store/src/c.ts": `import type { b } from "./b.ts"; export type B = typeof b;`,
};

let directory: string;
let violations: Violation[];

beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), "layering-"));
  await writeTree(join(directory, "clean"), clean);
  const codes = Object.fromEntries(planted.map(({ from, code }) => [from, code]));
  await writeTree(join(directory, "planted"), { ...clean, ...beside, ...codes });
  violations = await cruise(join(directory, "planted"));
});

afterAll(() => rm(directory, { recursive: true, force: true }));

it("a tree that keeps the rules passes", async () => {
  expect(await cruise(join(directory, "clean"))).toEqual([]);
});

describe("a violation is found", () => {
  it.each(planted)("$rule: $from", ({ rule, from }) => {
    expect(violations).toContainEqual({ rule, from });
  });
});

it("every rule has a planted violation", async () => {
  const { default: config } = await import(join(root, ".dependency-cruiser.mjs"));
  const rules: string[] = config.forbidden.map(({ name }: { name: string }) => name);
  expect([...new Set(planted.map(({ rule }) => rule))].sort()).toEqual(rules.sort());
});

async function writeTree(tree: string, files: Record<string, string>): Promise<void> {
  for (const [path, code] of Object.entries(files)) {
    await mkdir(dirname(join(tree, path)), { recursive: true });
    await writeFile(join(tree, path), code);
  }
  for (const name of packages) {
    const manifest = join("packages", name, "package.json");
    const exports = { ".": "./src/index.ts", "./*": "./src/providers/*/index.ts" };
    const all = packages.map((other) => [`@slipway/${other}`, "1.0.0"]);
    // The store declares nothing but the vitest of its tests.
    const dependencies =
      name === "store" ? { vitest: "1.0.0" } : Object.fromEntries([...all, ["zod", "1.0.0"], ["vitest", "1.0.0"]]);
    const content = { name: `@slipway/${name}`, type: "module", exports, dependencies };
    await writeFile(join(tree, manifest), JSON.stringify(content));
    await mkdir(join(tree, "node_modules/@slipway"), { recursive: true });
    await symlink(join("../../packages", name), join(tree, "node_modules/@slipway", name));
  }
  for (const name of ["zod", "vitest"]) {
    await mkdir(join(tree, "node_modules", name), { recursive: true });
    await writeFile(join(tree, "node_modules", name, "package.json"), JSON.stringify({ name, exports: "./index.js" }));
    await writeFile(join(tree, "node_modules", name, "index.js"), "");
  }
  await copyFile(join(root, ".dependency-cruiser.mjs"), join(tree, ".dependency-cruiser.mjs"));
  await writeFile(join(tree, "package.json"), JSON.stringify({ name: "slipway", type: "module" }));
}

async function cruise(tree: string): Promise<Violation[]> {
  const program = join(root, "node_modules/dependency-cruiser/bin/dependency-cruiser.mjs");
  const args = [program, "{packages,bench,scripts}/**/*.{ts,tsx,mjs}", "--output-type", "json"];
  const { stdout } = await promisify(execFile)(process.execPath, args, { cwd: tree, maxBuffer: 2 ** 26 }).catch(
    (error) => {
      // The exit code is the number of violations, so only a missing report is a failure.
      if (error.stdout) return error;
      throw error;
    },
  );
  const { summary } = JSON.parse(stdout);
  return summary.violations.map(({ rule, from }: { rule: { name: string }; from: string }) => ({
    rule: rule.name,
    from,
  }));
}
