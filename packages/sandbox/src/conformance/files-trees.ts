import { describe, expect, test } from "vitest";
import type { Bytes, TreeEntry } from "../provider.ts";
import { readText } from "../run.ts";
import { type Conformance, drain, expectCode } from "./context.ts";

export function describeTrees(c: Conformance): void {
  describe("a tree", () => {
    const tree: TreeEntry[] = [
      { type: "directory", path: "empty", mode: 0o755 },
      { type: "file", path: "run.sh", mode: 0o755, content: "#!/bin/sh\n" },
      { type: "directory", path: "src", mode: 0o755 },
      { type: "file", path: "src/data", mode: 0o644, content: Uint8Array.of(0, 255, 10) },
      { type: "symlink", path: "src/link", target: "../run.sh" },
    ];

    test("comes out as it went in", async () => {
      const place = c.place();
      expect(await c.shared.files.upload(place, tree)).toMatchObject({ entries: tree.length, bytes: 13 });
      const out: TreeEntry[] = [];
      for await (const entry of c.shared.files.download(place)) {
        out.push(entry.type === "file" ? { ...entry, content: await whole(entry.content) } : entry);
      }
      const sorted = out.filter(({ path }) => path !== "" && path !== ".").sort((a, b) => (a.path < b.path ? -1 : 1));
      expect(sorted).toEqual(
        tree.map((entry) =>
          entry.type === "file" ? { ...entry, content: Buffer.from(entry.content as string) } : entry,
        ),
      );
    });

    test("lists a directory before what is in it", async () => {
      const place = c.place();
      await c.shared.files.upload(place, tree);
      const paths: string[] = [];
      for await (const entry of c.shared.files.download(place)) {
        paths.push(entry.path);
        if (entry.type === "file") await whole(entry.content);
      }
      expect(paths.indexOf("src")).toBeLessThan(paths.indexOf("src/data"));
    });

    test("may be given as it comes", async () => {
      const place = c.place();
      async function* entries(): AsyncGenerator<TreeEntry> {
        for (let i = 0; i < 50; i++) yield { type: "file", path: `f${i}`, mode: 0o644, content: `${i}` };
      }
      expect(await c.shared.files.upload(place, entries())).toEqual({ entries: 50, bytes: 90 });
      expect(await readText(c.shared.files, `${place}/f49`)).toBe("49");
    });

    test("holds its entries: no .., no absolute path, no way through a link", async () => {
      const { files } = c.shared;
      const place = c.place();
      for (const path of ["../evil", "a/../../evil", "/evil"]) {
        await expectCode(
          files.upload(`${place}/in`, [{ type: "file", path, mode: 0o644, content: "x" }]),
          "path_outside",
        );
      }
      const through: TreeEntry[] = [
        { type: "symlink", path: "link", target: place },
        { type: "file", path: "link/evil", mode: 0o644, content: "x" },
      ];
      await expectCode(files.upload(`${place}/in`, through), "path_outside", "not_a_directory");
      await expectCode(files.stat(`${place}/evil`), "file_not_found");
      await expectCode(files.stat("/evil"), "file_not_found");
    });
  });

  describe("search", () => {
    test("finds lines by text, by expression, by glob, and at most as many as asked", async () => {
      const { files } = c.shared;
      const place = c.place();
      await files.hydrate({
        [`${place}/a.ts`]: "one\nneedle 1\n",
        [`${place}/sub/b.js`]: "needle 2\nneedle 3\n",
        [`${place}/c`]: "n.edle",
      });
      const search = async (query: string, options = {}) =>
        (await drain(files.search(query, { path: place, ...options }))).sort((a, b) => (a.text < b.text ? -1 : 1));
      expect(await search("needle")).toEqual([
        { path: `${place}/a.ts`, line: 2, text: "needle 1" },
        { path: `${place}/sub/b.js`, line: 1, text: "needle 2" },
        { path: `${place}/sub/b.js`, line: 2, text: "needle 3" },
      ]);
      expect(await search("n.edle")).toEqual([{ path: `${place}/c`, line: 1, text: "n.edle" }]);
      expect(await search("^needle [23]$", { regex: true })).toHaveLength(2);
      expect(await search("needle", { glob: "**/*.ts" })).toHaveLength(1);
      expect(await search("needle", { maxMatches: 2 })).toHaveLength(2);
      expect(await search("nowhere")).toEqual([]);
    });

    test("refuses an expression that is none", async () => {
      await expectCode(drain(c.shared.files.search("(", { regex: true })), "invalid_request");
    });
  });
}

async function whole(content: Bytes): Promise<Buffer> {
  if (typeof content === "string") return Buffer.from(content);
  if (content instanceof Uint8Array) return Buffer.from(content);
  return Buffer.concat(await drain(content));
}
