import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import {
  chmodSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setImmediate } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { afterEach, beforeEach, expect, test } from "vitest";
import { collectTools } from "../../../keeper/tools/collect.ts";
import { createTools } from "../../../keeper/tools/tools.ts";

let root: string;
let source: string;
let store: string;
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), "slipway-tools-"));
  source = join(root, "source");
  store = join(root, "tools");
  for (const path of [store, join(source, "bin"), join(source, "lib")]) mkdirSync(path, { recursive: true });
  writeFileSync(join(source, "bin/program"), "#!/bin/sh\n", { mode: 0o700 });
  writeFileSync(join(source, "lib/data"), "data", { mode: 0o600 });
});
afterEach(() => rmSync(root, { recursive: true, force: true }));

const publish = async () => {
  const [tool] = await createTools(store, { tool: source }).publish(["tool"]);
  return tool?.digest ?? "";
};
const trees = () => readdirSync(store).filter((name) => !name.endsWith(".digest"));
const dayMs = 24 * 60 * 60_000;

test("a tool is copied for all to read, with its programs, and keeps no other rights", async () => {
  chmodSync(join(source, "bin/program"), 0o4700);
  const tree = join(store, await publish());
  expect(readFileSync(join(tree, "lib/data"), "utf8")).toBe("data");
  const mode = (path: string) => lstatSync(join(tree, path)).mode & 0o7777;
  expect([mode("."), mode("bin"), mode("bin/program"), mode("lib/data")]).toEqual([0o755, 0o755, 0o755, 0o644]);
});

test("links that stay inside are kept; those that lead out, and special files, are left out", async () => {
  const links = { stays: "lib/data", up: "lib/../bin", out: "../outside", sly: "lib/../../x", absolute: "/etc/passwd" };
  for (const [name, target] of Object.entries(links)) symlinkSync(target, join(source, name));
  spawnSync("mkfifo", [join(source, "pipe")]);
  const tree = join(store, await publish());
  expect(readdirSync(tree)).toEqual(["bin", "lib", "stays", "up"]);
});

test("the same content is kept once, whatever its times are", async () => {
  const first = await publish();
  const { ctimeMs } = lstatSync(join(store, first));
  utimesSync(join(source, "lib/data"), new Date(0), new Date(0));
  expect(await publish()).toBe(first);
  expect(await publish()).toBe(first);
  expect(trees()).toEqual([first]);
  expect(lstatSync(join(store, first)).ctimeMs).toBe(ctimeMs);
});

test("changed content is another tree, also when its size and time are as before; the old one stays", async () => {
  const first = await publish();
  const { atime, mtime } = lstatSync(join(source, "lib/data"));
  writeFileSync(join(source, "lib/data"), "DATA");
  utimesSync(join(source, "lib/data"), atime, mtime);
  const second = await publish();
  expect(readFileSync(join(store, first, "lib/data"), "utf8")).toBe("data");
  expect(readFileSync(join(store, second, "lib/data"), "utf8")).toBe("DATA");
});

test("a name, a mode and a link are content", async () => {
  const digests = [await publish()];
  chmodSync(join(source, "lib/data"), 0o755);
  digests.push(await publish());
  writeFileSync(join(source, "lib/empty"), "");
  digests.push(await publish());
  symlinkSync("lib/data", join(source, "link"));
  digests.push(await publish());
  expect(new Set(digests).size).toBe(4);
});

test("many that publish the same at once leave one tree and nothing half-made", async () => {
  const all = await Promise.all(Array.from({ length: 10 }, publish));
  expect(new Set(all).size).toBe(1);
  expect(trees()).toEqual([all[0]]);
});

test("what a killed publisher left is in nobody's way", async () => {
  const digest = await publish();
  const [mark = ""] = readdirSync(store).filter((name) => name.endsWith(".digest"));
  // Killed between the mark and the tree.
  rmSync(join(store, digest), { recursive: true });
  mkdirSync(join(store, "half.new"));
  expect(await publish()).toBe(digest);
  expect(readdirSync(store).sort()).toEqual([digest, mark, "half.new"].sort());
});

test("a publisher that is killed in the middle of its copy leaves no half tree under a digest", async () => {
  for (let i = 0; i < 500; i++) writeFileSync(join(source, `lib/${i}`), `${i}`.repeat(1000));
  const child = spawn(process.execPath, [fileURLToPath(new URL("tools-fixture.ts", import.meta.url)), store, source]);
  const gone = once(child, "exit");
  while (trees().length === 0) await setImmediate();
  child.kill("SIGKILL");
  expect(await gone).toEqual([null, "SIGKILL"]);
  expect(trees()).toEqual([expect.stringMatching(/\.new$/)]);
  const digest = await publish();
  expect(readdirSync(join(store, digest, "lib")).sort()).toEqual(readdirSync(join(source, "lib")).sort());
});

test("a mark without a digest is written anew", async () => {
  const digest = await publish();
  const mark = join(store, readdirSync(store).find((name) => name.endsWith(".digest")) ?? "");
  writeFileSync(mark, "");
  expect(await publish()).toBe(digest);
  expect(readFileSync(mark, "utf8")).toBe(digest);
});

test("a source that is no directory is named", async () => {
  for (const path of [join(root, "none"), join(source, "lib/data")]) {
    await expect(createTools(store, { broken: path }).publish(["broken"])).rejects.toMatchObject({
      code: "invalid_settings",
      message: expect.stringContaining(path),
    });
  }
});

test("trees that are recorded, or were asked for within a day, outlive the garbage collection", async () => {
  const digest = await publish();
  const collect = (recorded: string[], laterMs: number) => collectTools(store, new Set(recorded), Date.now() + laterMs);
  mkdirSync(join(store, "half.new"));
  expect(await collect([], dayMs / 2)).toBe(0);
  expect(await collect([digest], 2 * dayMs)).toBe(1);
  expect(trees()).toEqual([digest]);
  utimesSync(join(store, digest), 0, 0);
  await publish();
  expect(await collect([], 0)).toBe(0);
  expect(await collect([], 2 * dayMs)).toBe(1);
  expect(readdirSync(store)).toEqual([]);
});
