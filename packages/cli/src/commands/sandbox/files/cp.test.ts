import { mkdir, mkdtemp, readFile, rm, stat, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type FileInfo, SlipwayError } from "@slipway/contract";
import type { Bytes, SandboxFiles, TreeEntry } from "@slipway/sandbox";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { type CliOptions, runCli } from "../../../testing/run-cli.ts";
import { addSandbox, createStubProvider } from "../../../testing/stub-provider.ts";
import { parseEndpoint } from "./transfer.ts";

let here: string;
beforeEach(async () => {
  here = await mkdtemp(join(tmpdir(), "slipway-cp-"));
});
afterEach(() => rm(here, { recursive: true, force: true }));

const info = (type: FileInfo["type"], mode = 0o755): FileInfo => ({
  path: "/x",
  type,
  size: 3,
  mode,
  modifiedAt: 0,
  symlinkTarget: null,
});

async function bytesOf(content: Bytes): Promise<Buffer> {
  if (typeof content === "string" || content instanceof Uint8Array) return Buffer.from(content);
  const chunks: Uint8Array[] = [];
  for await (const chunk of content) chunks.push(chunk);
  return Buffer.concat(chunks);
}

/** A sandbox whose files are a map from path to what is there; what is written is kept in calls. */
function sandboxWith(entries: Record<string, FileInfo>, parts: Partial<SandboxFiles> = {}) {
  const calls: unknown[] = [];
  const files = {
    async stat(path: string) {
      const found = entries[path];
      if (!found) throw new SlipwayError("file_not_found", `${path} is not there`);
      return found;
    },
    async write(path: string, content: Bytes, options?: { mode?: number }) {
      const bytes = await bytesOf(content);
      calls.push(["write", path, bytes, options?.mode]);
      return { bytes: bytes.length };
    },
    mkdir: async (path: string) => void calls.push(["mkdir", path]),
    async upload(path: string, tree: AsyncIterable<TreeEntry>) {
      const seen: unknown[] = [];
      for await (const entry of tree) {
        seen.push(entry.type === "file" ? { ...entry, content: (await bytesOf(entry.content)).toString() } : entry);
      }
      calls.push(["upload", path, seen]);
      return { entries: seen.length, bytes: 3 };
    },
    async *read() {
      yield Buffer.from([0, 255, 7]);
    },
    ...parts,
  } as unknown as SandboxFiles;
  const provider = createStubProvider({}, { files });
  addSandbox(provider, { labels: { name: "box" } });
  return { provider, calls };
}

const cp = (from: string, to: string, options: CliOptions) => runCli(["sandbox", "cp", from, to], options);

test.each([
  ["-", { kind: "standard" }],
  ["box:/a:b", { kind: "sandbox", id: "box", path: "/a:b" }],
  ["box:", { kind: "sandbox", id: "box", path: "." }],
  ["./a:b", { kind: "here", path: "./a:b" }],
  ["/a:b", { kind: "here", path: "/a:b" }],
  ["plain", { kind: "here", path: "plain" }],
])("%s is read as an end of a copy", (text, expected) => {
  expect(parseEndpoint(text)).toEqual(expected);
});

describe("into a sandbox", () => {
  test("a file goes to its path with its mode, and below a directory that exists", async () => {
    const source = join(here, "run.sh");
    await writeFile(source, "#!\n", { mode: 0o750 });
    const { provider, calls } = sandboxWith({ "/srv": info("directory") });
    await cp(source, "box:/srv", { provider });
    await cp(source, "box:/new/name", { provider });
    expect(calls).toEqual([
      ["write", "/srv/run.sh", Buffer.from("#!\n"), 0o750],
      ["write", "/new/name", Buffer.from("#!\n"), 0o750],
    ]);
  });

  test("standard input becomes a file", async () => {
    const { provider, calls } = sandboxWith({});
    const { code } = await cp("-", "box:blob", { provider, stdin: Buffer.from([1, 0, 254]) });
    expect(code).toBe(0);
    expect(calls).toEqual([["write", "blob", Buffer.from([1, 0, 254]), undefined]]);
  });

  test("a tree goes below its name, or as content with /.", async () => {
    const source = join(here, "src");
    await mkdir(join(source, "sub"), { recursive: true });
    await writeFile(join(source, "sub", "a.txt"), "abc", { mode: 0o644 });
    await symlink("sub/a.txt", join(source, "link"));
    const { provider, calls } = sandboxWith({ "/srv": info("directory") });
    await cp(source, "box:/srv", { provider });
    await cp(`${source}/.`, "box:/srv", { provider });
    const entries = [
      { type: "symlink", path: "link", target: "sub/a.txt" },
      { type: "directory", path: "sub", mode: 0o755 },
      { type: "file", path: "sub/a.txt", mode: 0o644, content: "abc" },
    ];
    expect(calls).toEqual([
      ["mkdir", "/srv/src"],
      ["upload", "/srv/src", entries],
      ["mkdir", "/srv"],
      ["upload", "/srv", entries],
    ]);
  });

  test("a source that is not there is this machine's failure", async () => {
    const { provider } = sandboxWith({});
    const { code, stderr } = await cp(join(here, "none"), "box:/x", { provider });
    expect(code).toBe(125);
    expect(stderr).toMatch(/ENOENT.*\nwhat to do: Check the path/);
  });
});

describe("out of a sandbox", () => {
  test("a file arrives byte for byte, below a directory by its name", async () => {
    const { provider } = sandboxWith({ "/f.bin": info("file", 0o4711) });
    await cp("box:/f.bin", here, { provider });
    await cp("box:/f.bin", join(here, "g.bin"), { provider });
    for (const name of ["f.bin", "g.bin"]) expect(await readFile(join(here, name))).toEqual(Buffer.from([0, 255, 7]));
    expect((await stat(join(here, "f.bin"))).mode & 0o7777).toBe(0o711);
  });

  test("a file goes to standard output byte for byte", async () => {
    const { provider } = sandboxWith({ "/f.bin": info("file") });
    const { code, stdoutBytes, stderr } = await cp("box:/f.bin", "-", { provider });
    expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
    expect(stdoutBytes).toEqual(Buffer.from([0, 255, 7]));
  });

  test("a link in the destination directory is replaced, one that is named is followed", async () => {
    await mkdir(join(here, "in"));
    await writeFile(join(here, "target"), "old");
    await symlink("../target", join(here, "in", "f.bin"));
    await symlink("target", join(here, "named"));
    const { provider } = sandboxWith({ "/f.bin": info("file") });
    await cp("box:/f.bin", join(here, "in"), { provider });
    expect(await readFile(join(here, "target"), "utf8")).toBe("old");
    await cp("box:/f.bin", join(here, "named"), { provider });
    expect(await readFile(join(here, "target"))).toEqual(Buffer.from([0, 255, 7]));
  });

  test("a tree arrives below its name; links that lead outside are left out and told", async () => {
    const download = async function* (): AsyncGenerator<TreeEntry> {
      yield { type: "file", path: "a", mode: 0o644, content: "abc" };
      yield { type: "symlink", path: "b", target: "/etc/passwd" };
    };
    const { provider } = sandboxWith({ "/dist": info("directory") }, { download });
    const { code, stderr } = await cp("box:/dist", here, { provider });
    expect({ code, stderr }).toEqual({ code: 0, stderr: "skipped b: link points outside: /etc/passwd\n" });
    expect(await readFile(join(here, "dist", "a"), "utf8")).toBe("abc");
    const { stdout } = await runCli(["sandbox", "cp", "box:/dist", join(here, "new"), "--json"], { provider });
    expect(JSON.parse(stdout)).toEqual({ entries: 1, bytes: 3, leftOut: [{ path: "b", reason: expect.any(String) }] });
  });

  test("a link planted under the tree's name is not written through", async () => {
    await mkdir(join(here, "to"));
    await mkdir(join(here, "else"));
    await symlink("../else", join(here, "to", "dist"));
    const { provider } = sandboxWith({ "/dist": info("directory") });
    const { code, stderr } = await cp("box:/dist", join(here, "to"), { provider });
    expect(code).toBe(125);
    expect(stderr).toContain("code: path_outside");
  });

  test("a directory cannot become standard output", async () => {
    const { provider } = sandboxWith({ "/dist": info("directory") });
    const { code, stderr } = await cp("box:/dist", "-", { provider });
    expect(code).toBe(125);
    expect(stderr).toContain("code: not_a_file");
  });
});
