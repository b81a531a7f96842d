import fc from "fast-check";
import { expect, test } from "vitest";
import { FileTree, walk } from "./tree.ts";

function file(text: string) {
  return { type: "file", data: Buffer.from(text), mode: 0o644, modifiedAt: 0 } as const;
}

function contents(tree: FileTree): Record<string, string> {
  const { node } = tree.locate("/", true);
  if (node?.type !== "directory") throw new Error("no root");
  const files: Record<string, string> = {};
  for (const { names, node: child } of walk(node)) {
    if (child.type === "file") files[names.join("/")] = Buffer.from(child.data).toString();
  }
  return files;
}

test("what happens to one side of a fork, the other side never sees", () => {
  const path = fc
    .array(fc.constantFrom("a", "b", "c"), { minLength: 1, maxLength: 3 })
    .map((names) => [...names.slice(0, -1).map((n) => `d${n}`), names.at(-1) ?? ""]);
  const change = fc.record({ tree: fc.nat(), path, text: fc.option(fc.string({ maxLength: 3 })), forks: fc.boolean() });
  fc.assert(
    fc.property(fc.array(change, { maxLength: 60 }), (changes) => {
      const trees = [FileTree.empty()];
      const models: Record<string, string>[] = [{}];
      for (const { tree: pick, path: names, text, forks } of changes) {
        const at = pick % trees.length;
        const tree = trees[at] as FileTree;
        const model = models[at] as Record<string, string>;
        if (forks) {
          trees.push(tree.fork());
          models.push({ ...model });
        }
        if (text !== null) {
          tree.put(names, file(text), 0);
          model[names.join("/")] = text;
        } else if (tree.locate(names.join("/"), false).node !== undefined) {
          tree.remove(names, 0);
          delete model[names.join("/")];
        }
      }
      for (const [at, tree] of trees.entries()) {
        expect(contents(tree)).toEqual(models[at]);
        const bytes = Object.values(models[at] ?? {}).reduce((sum, text) => sum + Buffer.byteLength(text), 0);
        expect(tree.bytes).toBe(bytes);
      }
    }),
  );
});

test("a change after a fork copies the directories on its way, not the rest", () => {
  const tree = FileTree.empty();
  for (let i = 0; i < 100; i++) tree.put([`d${i}`, "f"], file("x"), 0);
  const fork = tree.fork();
  fork.put(["d7", "f"], file("y"), 0);
  const same = Array.from(
    { length: 100 },
    (_, i) => tree.locate(`/d${i}`, true).node === fork.locate(`/d${i}`, true).node,
  );
  expect(same.filter((shared) => !shared)).toHaveLength(1);
  expect(fork.bytesSinceFork).toBe(1);
});

test("a link leads from the tree's own root and never above it", () => {
  const tree = FileTree.empty();
  tree.put(["etc", "shadow"], file("own"), 0);
  tree.put(["up"], { type: "symlink", target: "../../../etc/shadow", mode: 0o777, modifiedAt: 0 }, 0);
  tree.put(["round"], { type: "symlink", target: "round", mode: 0o777, modifiedAt: 0 }, 0);
  expect(tree.locate("/up", true).names).toEqual(["etc", "shadow"]);
  expect(tree.locate("/up", false).node?.type).toBe("symlink");
  expect(() => tree.locate("/round", true)).toThrow(expect.objectContaining({ code: "file_not_found" }));
});
