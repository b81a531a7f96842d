import { createHash } from "node:crypto";
import { type FileChange, type FileInfo, hasCode } from "@slipway/contract";
import fc from "fast-check";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { SandboxFiles, TreeEntry } from "../../provider.ts";
import { type AgentBox, execStart, startAgentBox } from "../agent-fixture.ts";
import { startExec } from "../exec/exec.ts";
import { createFiles } from "./files.ts";

let box: AgentBox;
let files: SandboxFiles;
beforeAll(async () => {
  box = await startAgentBox({ agentArguments: ["--file-bytes", String(300 * 1024 * 1024)] });
  files = createFiles({ dial: box.dial, workdir: "/workspace" });
});
afterAll(() => box[Symbol.asyncDispose]());

const refusal = (code: Parameters<typeof hasCode>[1]) => (error: unknown) => hasCode(error, code);

async function sh(script: string): Promise<void> {
  const exec = await startExec(box.host, execStart(["bash", "-ec", script]));
  expect(await exec.wait()).toMatchObject({ exitCode: 0 });
}

async function bytesOf(content: AsyncIterable<Uint8Array>): Promise<Buffer> {
  const parts: Uint8Array[] = [];
  for await (const part of content) parts.push(part);
  return Buffer.concat(parts);
}

const text = async (path: string) => (await bytesOf(files.read(path))).toString();

async function gather<T>(items: AsyncIterable<T>): Promise<T[]> {
  const all: T[] = [];
  for await (const item of items) all.push(item);
  return all;
}

const names = (infos: FileInfo[]) => infos.map(({ path }) => path).sort();

describe("a file", () => {
  it("is read as it was written, whatever its bytes", async () => {
    await fc.assert(
      fc.asyncProperty(fc.uint8Array({ maxLength: 200_000, size: "max" }), async (data) => {
        expect(await files.write("any", data)).toEqual({ bytes: data.length });
        expect(Buffer.compare(await bytesOf(files.read("any")), data)).toBe(0);
      }),
      { numRuns: 15 },
    );
  });

  it("of 200 MB streams in and out", async () => {
    const part = Buffer.alloc(1024 * 1024, "slipway!");
    const hash = createHash("sha256");
    async function* content() {
      for (let i = 0; i < 200; i++) {
        hash.update(part);
        yield part;
      }
    }
    expect(await files.write("large", content())).toEqual({ bytes: 200 * part.length });
    const back = createHash("sha256");
    for await (const piece of files.read("large")) back.update(piece);
    expect(back.digest("hex")).toBe(hash.digest("hex"));
    await files.remove("large");
  });

  it("is read in part", async () => {
    await files.write("part", "0123456789");
    expect((await bytesOf(files.read("part", { offset: 3, length: 4 }))).toString()).toBe("3456");
    expect((await bytesOf(files.read("part", { offset: 30 }))).length).toBe(0);
    expect((await bytesOf(files.read("part", { length: 0 }))).length).toBe(0);
    await expect(bytesOf(files.read("part", { offset: -1 }))).rejects.toSatisfy(refusal("invalid_request"));
  });

  it("is written with its parents, its mode, and keeps the mode it had", async () => {
    await files.write("a/b/c.sh", "#!/bin/sh", { mode: 0o755 });
    expect(await files.stat("a/b/c.sh")).toMatchObject({
      path: "/workspace/a/b/c.sh",
      type: "file",
      mode: 0o755,
      size: 9,
    });
    await files.write("a/b/c.sh", "new");
    expect((await files.stat("a/b/c.sh")).mode).toBe(0o755);
    await files.write("plain", "");
    expect(await files.stat("plain")).toMatchObject({ mode: 0o644, size: 0, symlinkTarget: null });
  });

  it("whose content fails on the way stays what it was, and nothing is left beside it", async () => {
    await files.write("kept/file", "old");
    async function* broken() {
      yield Buffer.from("new");
      throw new Error("source broke");
    }
    await expect(files.write("kept/file", broken())).rejects.toThrow("source broke");
    await expect.poll(async () => await text("kept/file")).toBe("old");
    const exec = await startExec(
      box.host,
      execStart(["sh", "-c", "while [ $(ls -A kept | wc -l) != 1 ]; do sleep 0.02; done"]),
    );
    expect((await exec.wait()).exitCode).toBe(0);
  });

  it("above the disk's limit is refused", async () => {
    const part = Buffer.alloc(4 * 1024 * 1024);
    async function* endless() {
      for (;;) yield part;
    }
    await expect(files.write("huge", endless())).rejects.toSatisfy(refusal("out_of_disk"));
    await expect(files.stat("huge")).rejects.toSatisfy(refusal("file_not_found"));
  });

  it.each([
    ["none", () => text("nowhere"), "file_not_found"],
    ["a directory", () => text("/workspace"), "not_a_file"],
    ["a directory to write", () => files.write("/workspace", "x"), "not_a_file"],
    ["below a file", () => files.write("plain/x", "x"), "not_a_directory"],
    ["a device", () => text("/dev/zero"), "not_a_file"],
    ["forbidden", () => files.write("/usr/x", "x"), "file_forbidden"],
    ["above the root", () => text("../../etc/passwd"), "path_outside"],
    ["with a NUL", () => text("a\0b"), "invalid_request"],
    ["without a name", () => text(""), "invalid_request"],
    ["too long", () => files.write("x".repeat(300), ""), "invalid_request"],
    ["aborted", () => gather(files.read("plain", { signal: AbortSignal.abort() })), "aborted"],
  ] as const)("that is %s is refused", async (_, operation, code) => {
    await files.write("plain", "");
    await expect(operation()).rejects.toSatisfy(refusal(code));
  });

  it("that is a pipe is refused without waiting for its writer", async () => {
    await sh("mkfifo -m 666 /workspace/pipe");
    await expect(text("pipe")).rejects.toSatisfy(refusal("not_a_file"));
    await expect(files.write("pipe", "x")).rejects.toSatisfy(refusal("not_a_file"));
    await files.remove("pipe");
  });
});

describe("a directory", () => {
  it("lists its children, or what a glob matches", async () => {
    await files.hydrate({
      "list/a.ts": "1",
      "list/b.js": "2",
      "list/deep/c.ts": "3",
      "list/.hidden": "4",
      "/tmp/outside": "5",
    });
    const at = (name: string) => `/workspace/list/${name}`;
    expect(names(await gather(files.list("list")))).toEqual([".hidden", "a.ts", "b.js", "deep"].map(at));
    expect(names(await gather(files.list("list", { glob: "*.ts" })))).toEqual([at("a.ts")]);
    expect(names(await gather(files.list("list", { glob: "**/*.ts" })))).toEqual([at("a.ts"), at("deep/c.ts")]);
    expect(names(await gather(files.list("list", { glob: "*.{ts,js}" })))).toEqual([at("a.ts"), at("b.js")]);
    expect(await text("/tmp/outside")).toBe("5");
    await expect(gather(files.list("list/a.ts"))).rejects.toSatisfy(refusal("not_a_directory"));
  });

  it("with names that are not UTF-8 is listed and removed", async () => {
    await sh("mkdir odd; printf x > $'odd/\\377\\n'");
    expect((await gather(files.list("odd"))).length).toBe(1);
    expect((await gather(files.download("odd"))).length).toBe(1);
    await files.remove("odd", { recursive: true });
  });

  it("is made with its parents; one that exists is fine, a file in its place is not", async () => {
    await files.mkdir("m/n/o", { mode: 0o700 });
    await files.mkdir("m/n/o");
    expect(await files.stat("m/n/o")).toMatchObject({ type: "directory", mode: 0o700 });
    await files.write("m/file", "");
    await expect(files.mkdir("m/file")).rejects.toSatisfy(refusal("not_a_directory"));
  });

  it("is removed empty, or with all it holds", async () => {
    await files.write("r/s/t", "");
    await expect(files.remove("r")).rejects.toSatisfy(refusal("directory_not_empty"));
    await files.remove("r", { recursive: true });
    await expect(files.stat("r")).rejects.toSatisfy(refusal("file_not_found"));
    await expect(files.remove("r")).rejects.toSatisfy(refusal("file_not_found"));
    await expect(files.remove("/", { recursive: true })).rejects.toSatisfy(refusal("file_forbidden"));
  });
});

describe("a move", () => {
  it("keeps what is there unless it may overwrite", async () => {
    await files.hydrate({ "mv/one": "1", "mv/two": "2" });
    await expect(files.move("mv/one", "mv/two")).rejects.toSatisfy(refusal("file_exists"));
    await files.move("mv/one", "mv/two", { overwrite: true });
    expect(await text("mv/two")).toBe("1");
    await expect(files.move("mv", "mv/inner")).rejects.toSatisfy(refusal("invalid_request"));
    await expect(files.move("mv/none", "x")).rejects.toSatisfy(refusal("file_not_found"));
  });

  it("between file systems copies modes, links and content, and takes the source away", async () => {
    await sh(
      "mkdir -p tree/sub; echo hi > tree/sub/file; chmod 751 tree/sub; chmod 640 tree/sub/file; ln -s sub/file tree/link",
    );
    await files.move("tree", "/other/moved/tree");
    expect(await text("/other/moved/tree/sub/file")).toBe("hi\n");
    expect((await files.stat("/other/moved/tree/sub")).mode).toBe(0o751);
    expect((await files.stat("/other/moved/tree/sub/file")).mode).toBe(0o640);
    expect(await files.stat("/other/moved/tree/link")).toMatchObject({ type: "symlink", symlinkTarget: "sub/file" });
    await expect(files.stat("tree")).rejects.toSatisfy(refusal("file_not_found"));
    await files.write("tree", "in the way");
    await expect(files.move("/other/moved/tree", "tree")).rejects.toSatisfy(refusal("file_exists"));
  });
});

describe("a search", () => {
  it("finds text and regular expressions, by line, in files of the glob", async () => {
    await files.hydrate({
      "s/a.txt": "one\ntwo words\nthree",
      "s/b.md": "two\n",
      "s/bin": Buffer.from("two\0\n"),
      "s/long": `${"y".repeat(600_000)}two\nlast two`,
    });
    const found = async (query: string, options = {}) =>
      (await gather(files.search(query, { path: "s", ...options })))
        .map(({ path, line, text: body }) => `${path.slice(13)}:${line}:${body.slice(0, 20)}`)
        .sort();
    expect(await found("two")).toEqual(["a.txt:2:two words", "b.md:1:two", "long:2:last two"]);
    expect(await found("^t[a-z]+$", { regex: true })).toEqual(["a.txt:3:three", "b.md:1:two"]);
    expect(await found("two", { glob: "*.md" })).toEqual(["b.md:1:two"]);
    expect((await found("two", { maxMatches: 1 })).length).toBe(1);
    expect((await found("t", { maxMatches: 1, glob: "*.md" })).length).toBe(1);
    await expect(found("(", { regex: true })).rejects.toSatisfy(refusal("invalid_request"));
    expect(await gather(files.search("three", { path: "s/a.txt" }))).toEqual([
      { path: "/workspace/s/a.txt", line: 3, text: "three" },
    ]);
  });
});

describe("a tree", () => {
  it("goes in and comes out the same", async () => {
    const big = Buffer.alloc(3_000_000, "z");
    const tree: TreeEntry[] = [
      { type: "directory", path: "empty", mode: 0o750 },
      { type: "file", path: "src/index.ts", mode: 0o644, content: "export {}" },
      { type: "file", path: "src/big", mode: 0o600, content: big },
      { type: "file", path: "src/none", mode: 0o644, content: "" },
      { type: "symlink", path: "src/link", target: "../empty" },
    ];
    expect(await files.upload("up", tree)).toEqual({ entries: 5, bytes: 9 + big.length });
    const back = new Map<string, unknown>();
    for await (const entry of files.download("up")) {
      const content =
        entry.type === "file"
          ? (entry.content instanceof Uint8Array
              ? Buffer.from(entry.content)
              : await bytesOf(entry.content as AsyncIterable<Uint8Array>)
            ).length
          : 0;
      back.set(entry.path, entry.type === "symlink" ? entry.target : [entry.type, entry.mode, content]);
    }
    expect(Object.fromEntries(back)).toEqual({
      empty: ["directory", 0o750, 0],
      src: ["directory", 0o755, 0],
      "src/index.ts": ["file", 0o644, 9],
      "src/big": ["file", 0o600, big.length],
      "src/none": ["file", 0o644, 0],
      "src/link": "../empty",
    });
  });

  it("whose files nobody reads still comes to its end", async () => {
    await files.write("skip/big", Buffer.alloc(5_000_000));
    await files.write("skip/small", "x");
    expect((await gather(files.download("skip"))).map(({ path }) => path).sort()).toEqual(["big", "small"]);
  });

  it.each(["../out", "/abs", "a/../../out", "a//b", "./a", "", "a/..", "in/link/x", "in/filelink/x", "nul\0"])(
    "refuses the entry %j",
    async (path) => {
      await sh("mkdir -p in; ln -sfn /other in/link; ln -sfn /etc/passwd in/filelink");
      const entries: TreeEntry[] = [{ type: "file", path, mode: 0o644, content: "evil" }];
      await expect(files.upload("/workspace", entries)).rejects.toSatisfy(refusal("path_outside"));
      await expect(files.stat("/other/x")).rejects.toSatisfy(refusal("file_not_found"));
    },
  );

  it("does not go through a link that it brought along", async () => {
    const entries: TreeEntry[] = [
      { type: "symlink", path: "door", target: "/other" },
      { type: "file", path: "door/x", mode: 0o644, content: "evil" },
    ];
    await expect(files.upload("brought", entries)).rejects.toSatisfy(refusal("path_outside"));
    await expect(files.stat("/other/x")).rejects.toSatisfy(refusal("file_not_found"));
  });

  it("replaces links and files instead of writing into them", async () => {
    await sh("mkdir -p rep; echo precious > precious; ln -s ../precious rep/link; ln precious rep/hard");
    await files.upload("rep", [
      { type: "file", path: "link", mode: 0o644, content: "new" },
      { type: "file", path: "hard", mode: 0o644, content: "new" },
    ]);
    expect(await text("precious")).toBe("precious\n");
    expect(await text("rep/link")).toBe("new");
  });
});

describe("a watch", () => {
  /** Changes after the watch is known to stand: a marker is written until it is seen. */
  async function watching(
    path: string,
    recursive: boolean,
    marker: string,
  ): Promise<{ next(): Promise<FileChange>; stop(): Promise<unknown> }> {
    const changes = files.watch(path, { recursive })[Symbol.asyncIterator]();
    const first = changes.next();
    let seen = false;
    void first.then(() => {
      seen = true;
    });
    while (!seen) await files.write(marker, "m");
    const next = async (): Promise<FileChange> => {
      const { value } = await changes.next();
      return value.path.endsWith(marker.split("/").at(-1) ?? "") ? await next() : value;
    };
    return { next, stop: async () => await changes.return?.() };
  }

  it("sees what is created, changed and removed, also in directories that are new", async () => {
    await files.mkdir("w");
    const changes = await watching("w", true, "w/marker");
    await sh("mkdir -p w/new/deep; echo x > w/new/deep/file");
    const seen: string[] = [];
    while (!seen.includes("/workspace/w/new/deep/file")) seen.push((await changes.next()).path);
    await sh("echo y >> w/new/deep/file; rm w/new/deep/file");
    const types: string[] = [];
    while (!types.includes("removed")) types.push((await changes.next()).type);
    expect(types).toContain("modified");
    await changes.stop();
  });

  it("of a file goes on when the file is replaced", async () => {
    await files.write("wf/file", "1");
    const changes = files.watch("wf/file")[Symbol.asyncIterator]();
    const first = changes.next();
    let seen = false;
    void first.then(() => {
      seen = true;
    });
    while (!seen) await files.write("wf/file", "2");
    await files.write("wf/other", "not this");
    await sh("echo 3 > wf/tmp; mv wf/tmp wf/file; rm wf/file");
    let change: FileChange;
    do {
      change = (await changes.next()).value;
      expect(change.path).toBe("/workspace/wf/file");
    } while (change.type !== "removed");
    await changes.return?.();
  });

  it("of nothing is refused", async () => {
    await expect(gather(files.watch("no/such"))).rejects.toSatisfy(refusal("file_not_found"));
  });
});
