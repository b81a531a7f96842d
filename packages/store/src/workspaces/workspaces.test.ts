import { chmodSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { SlipwayError } from "@slipway/contract";
import { afterAll, describe, expect, test } from "vitest";
import { expectCode, keysOf } from "../objects/conformance/suite.ts";
import { openDirectoryStorage } from "../objects/directory.ts";
import type { ObjectStorage } from "../objects/storage.ts";
import { MemoryTree } from "../testing/memory-tree.ts";
import { newVersionId, versionTimeMs } from "./version-id.ts";
import { unfinishedKey } from "./versions.ts";
import { createWorkspace } from "./workspaces.ts";

const root = mkdtempSync(join(tmpdir(), "slipway-workspaces-"));
afterAll(() => rmSync(root, { recursive: true }));
let places = 0;

async function fresh() {
  const directory = join(root, `${++places}`);
  const storage = await openDirectoryStorage(directory);
  return { directory, storage, workspace: createWorkspace(storage) };
}

const odd = new MemoryTree()
  .put("a b/ü 文 😀", "unicode")
  .put("a b/line\nbreak", Buffer.from([0, 255, 10, 13]))
  .put("-rf", "dash")
  .put("$(touch x)", "shell", 0o755)
  .put("secret", "", 0o600)
  .put("closed/inner", "x");
odd.nodes.set("closed", { type: "directory", path: "closed", mode: 0o555 });
odd.nodes.set("empty", { type: "directory", path: "empty", mode: 0o700 });
odd.nodes.set("link", { type: "symlink", path: "link", target: "../../etc/passwd" });

describe("a sync", () => {
  test("keeps plain files that need no Slipway, and brings back names, bytes, modes and links", async () => {
    const { directory, workspace } = await fresh();
    const { version, isNew, files } = await workspace.sync(odd, "/w");
    expect({ isNew, files }).toEqual({ isNew: true, files: 6 });
    const plain = join(directory, "versions", version);
    expect(readFileSync(join(plain, "a b/line\nbreak"))).toEqual(Buffer.from([0, 255, 10, 13]));
    expect(readdirSync(plain).sort()).toEqual(["$(touch x)", "-rf", "a b", "closed", "secret"]);
    const back = new MemoryTree();
    expect(await workspace.hydrate(back, "/w")).toMatchObject({ version });
    expect(back.content()).toEqual(odd.content());
  });

  test("sends only what changed, and nothing when nothing has", async () => {
    const { workspace } = await fresh();
    const tree = new MemoryTree();
    for (let index = 0; index < 300; index++) tree.put(`d/${index}`, `content ${index}`);
    const first = await workspace.sync(tree, "/w");
    tree.travelled.length = 0;
    expect(await workspace.sync(tree, "/w")).toMatchObject({ isNew: false, version: first.version });
    expect(tree.travelled).toEqual([]);
    tree.put("d/7", "CONTENT 7").put("d/8", "longer than before").put("new", "x");
    tree.nodes.delete("d/9");
    const second = await workspace.sync(tree, "/w");
    expect(second).toMatchObject({ isNew: true, files: 300, uploadedFiles: 3 });
    expect(tree.travelled.sort()).toEqual(["d/7", "d/8", "new"]);
    const back = new MemoryTree();
    await workspace.hydrate(back, "/w", { version: second.version });
    expect(back.content()).toEqual(tree.content());
    expect((await workspace.versions()).map(({ version }) => version)).toEqual([second.version, first.version]);
  });

  test("makes a new version when only a mode, a link or a directory changed", async () => {
    const { workspace } = await fresh();
    const tree = new MemoryTree().put("a", "x").put("d/b", "y");
    tree.nodes.set("l", { type: "symlink", path: "l", target: "a" });
    const changes = [
      () => tree.put("a", "x", 0o755),
      () => tree.nodes.set("l", { type: "symlink", path: "l", target: "d/b" }),
      () => tree.nodes.set("d", { type: "directory", path: "d", mode: 0o700 }),
      () => tree.nodes.set("e", { type: "directory", path: "e", mode: 0o755 }),
    ];
    await workspace.sync(tree, "/w");
    tree.travelled.length = 0;
    for (const change of changes) {
      change();
      expect(await workspace.sync(tree, "/w")).toMatchObject({ isNew: true, uploadedFiles: 0 });
    }
    const back = new MemoryTree();
    await workspace.hydrate(back, "/w");
    expect(back.content()).toEqual(tree.content());
  });

  test("works in an image that cannot hash", async () => {
    const { workspace } = await fresh();
    const tree = new MemoryTree().put("a", "x");
    tree.canHash = false;
    await workspace.sync(tree, "/w");
    expect(await workspace.sync(tree, "/w")).toMatchObject({ isNew: true, uploadedFiles: 1 });
  });

  test("of two at once makes two whole versions", async () => {
    const { workspace } = await fresh();
    const trees = Array.from({ length: 4 }, (_, index) => new MemoryTree().put("who", `${index}`));
    const synced = await Promise.all(trees.map((tree) => workspace.sync(tree, "/w")));
    expect(new Set(synced.map(({ version }) => version)).size).toBe(4);
    for (const [index, { version }] of synced.entries()) {
      const back = new MemoryTree();
      await workspace.hydrate(back, "/w", { version });
      expect(back.content()).toEqual(trees[index]?.content());
    }
  });

  test("that fails leaves no version and no objects", async () => {
    const { storage, workspace } = await fresh();
    const tree = new MemoryTree().put("a", "x").put("b", "y");
    const first = await workspace.sync(tree, "/w");
    const before = await keysOf(storage, "");
    let puts = 0;
    const failing: ObjectStorage = {
      ...storage,
      put: async (...call) => {
        if (++puts > 1) throw new SlipwayError("storage_unavailable", "gone");
        return await storage.put(...call);
      },
    };
    tree.put("c", "1").put("d", "2");
    await expectCode(createWorkspace(failing).sync(tree, "/w"), "storage_unavailable");
    expect(await keysOf(storage, "")).toEqual(before);
    expect((await workspace.versions()).map(({ version }) => version)).toEqual([first.version]);
  });

  test.each(["bad\ufffdname", "x".repeat(256), `${"d/".repeat(500)}deep`])("refuses the name %j", async (name) => {
    const { workspace, storage } = await fresh();
    await expectCode(workspace.sync(new MemoryTree().put(name, "x"), "/w"), "file_not_storable");
    expect(await keysOf(storage, "")).toEqual([]);
  });

  test("a day later removes what a killed one left", async () => {
    const { storage, workspace } = await fresh();
    const dead = newVersionId(0, undefined);
    await storage.put(`versions/${dead}/half`, "x");
    await storage.put(unfinishedKey(dead), "");
    await workspace.sync(new MemoryTree().put("a", "1"), "/w");
    expect(await keysOf(storage, "unfinished/")).toHaveLength(1);
    const old: ObjectStorage = {
      ...storage,
      list: async (...call) => {
        const page = await storage.list(...call);
        return { ...page, objects: page.objects.map((info) => ({ ...info, modifiedAtMs: 0 })) };
      },
    };
    await createWorkspace(old).sync(new MemoryTree().put("a", "2"), "/w");
    expect((await keysOf(storage, "")).filter((key) => key.includes(dead))).toEqual([]);
    expect(await workspace.versions()).toHaveLength(2);
  });
});

describe("a restore", () => {
  test("makes a directory equal to the version, and fetches only what differs", async () => {
    const { workspace } = await fresh();
    const tree = new MemoryTree().put("keep", "same").put("d/change", "old").put("gone", "back").put("f", "file");
    const expected = tree.content();
    const { version } = await workspace.sync(tree, "/w");
    tree.put("d/change", "new").put("d/more/deep", "x");
    tree.nodes.delete("gone");
    tree.nodes.delete("f");
    tree.put("f/now", "a directory");
    expect(await workspace.restore(tree, "/w", { version })).toMatchObject({ entries: 3, removed: 2 });
    expect(tree.content()).toEqual(expected);
  });

  test("of a place that holds nothing touches nothing", async () => {
    const { workspace } = await fresh();
    const tree = new MemoryTree().put("a", "x");
    await expectCode(workspace.restore(tree, "/w"), "version_not_found");
    await expectCode(workspace.restore(tree, "/w", { version: "../../x" }), "version_not_found");
    await expectCode(workspace.hydrate(tree, "/w", { version: newVersionId(5, undefined) }), "version_not_found");
    expect(Object.keys(tree.content())).toEqual(["a"]);
  });
});

describe("plain objects of others", () => {
  test("are what a sandbox starts with while there is no version", async () => {
    const { storage, workspace } = await fresh();
    await storage.put("src/main.c", "int main;");
    await storage.put("versions/readme", "not Slipway's");
    const tree = new MemoryTree();
    expect(await workspace.hydrate(tree, "/w")).toMatchObject({ version: null, entries: 2 });
    await workspace.sync(tree, "/w");
    await storage.put("later", "x");
    const back = new MemoryTree();
    await workspace.hydrate(back, "/w");
    expect(back.content()).toEqual(tree.content());
  });
});

test("a sandbox that lists pipes without end is not listened to for ever", async () => {
  const { workspace } = await fresh();
  const tree = new MemoryTree();
  let listed = 0;
  tree.files.list = async function* () {
    for (; listed < 1_000_000; listed++)
      yield { path: `/w/${listed}`, type: "other", mode: 0o644, size: 0, modifiedAt: 0, symlinkTarget: null };
  };
  await expectCode(workspace.sync(tree, "/w"), "too_large");
  expect(listed).toBeLessThan(600_000);
});

describe("a version", () => {
  test("whose bytes or manifest were changed is refused, and nothing of it is taken as right", async () => {
    const { directory, workspace } = await fresh();
    const tree = new MemoryTree().put("a", "right");
    const { version } = await workspace.sync(tree, "/w");
    const [file, manifest] = [
      join(directory, "versions", version, "a"),
      join(directory, "manifests", `${version}.json`),
    ];
    const text = readFileSync(manifest, "utf8");
    for (const path of [file, manifest]) chmodSync(path, 0o600);
    writeFileSync(file, "wrong");
    await expectCode(workspace.hydrate(new MemoryTree(), "/w"), "storage_damaged");
    for (const path of ["../a", "/a", "a/../b", "a/./b", "", "b\\u0000"]) {
      writeFileSync(manifest, text.replace('"path":"a"', `"path":"${path}"`));
      await expectCode(workspace.hydrate(new MemoryTree(), "/w"), "storage_damaged");
    }
    for (const broken of ["", "{", "<html>", "null", text.slice(0, -20)]) {
      writeFileSync(manifest, broken);
      await expectCode(workspace.hydrate(new MemoryTree(), "/w"), "storage_damaged");
    }
    writeFileSync(manifest, JSON.stringify({ ...JSON.parse(text), entries: new Array(500_001).fill(0) }));
    const tooMany = { code: "storage_damaged", message: expect.stringContaining("more than 500000 entries") };
    await expect(workspace.hydrate(new MemoryTree(), "/w")).rejects.toMatchObject(tooMany);
  });

  test("can be deleted, whichever others share its files", async () => {
    const { storage, workspace } = await fresh();
    const tree = new MemoryTree().put("a", "x");
    const first = await workspace.sync(tree, "/w");
    tree.put("b", "y");
    const second = await workspace.sync(tree, "/w");
    await workspace.removeVersion(first.version);
    await expectCode(workspace.removeVersion(first.version), "version_not_found");
    expect((await keysOf(storage, "")).every((key) => key.includes(second.version))).toBe(true);
    const back = new MemoryTree();
    await workspace.hydrate(back, "/w");
    expect(back.content()).toEqual(tree.content());
  });

  test("is later than the newest one, whatever the clock says", () => {
    const newest = newVersionId(Date.UTC(2100, 0), undefined);
    const next = newVersionId(Date.UTC(2026, 0), newest);
    expect(next > newest).toBe(true);
    expect(versionTimeMs(next)).toBe(Date.UTC(2100, 0) + 1);
  });
});
