import { execFile } from "node:child_process";
import { chmod, mkdir, mkdtemp, readFile, rm, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { putDirectory, run, type Sandbox, type SandboxProvider } from "@slipway/sandbox";
import { openProvider } from "@slipway/sandbox/open";
import { afterAll, beforeAll, expect, it } from "vitest";
import { applyPatch } from "./apply.ts";
import { takeBaseline } from "./changes.ts";

const git = promisify(execFile);
const workdir = "/workspace";
const { signal } = new AbortController();
let scratch: string;
let provider: SandboxProvider;

beforeAll(async () => {
  scratch = await mkdtemp("/var/tmp/slipway-changes-");
  // As root, sandboxes run as another user, who must be able to pass through.
  await chmod(scratch, 0o711);
  provider = await openProvider({ stateDir: join(scratch, "state"), environment: process.env });
});
afterAll(async () => {
  await provider[Symbol.asyncDispose]();
  await rm(scratch, { recursive: true, force: true });
});

async function directoryOf(name: string, files: Readonly<Record<string, string>>): Promise<string> {
  const directory = join(scratch, name);
  for (const [path, content] of Object.entries(files)) {
    await mkdir(join(directory, path, ".."), { recursive: true });
    await writeFile(join(directory, path), content);
  }
  return directory;
}

async function put(sandbox: Sandbox, directory: string): Promise<string[]> {
  const leftOut: string[] = [];
  const options = { signal, onBytes: () => {}, onLeftOut: (path: string) => void leftOut.push(path) };
  await putDirectory(sandbox, { directory, workdir, environment: process.env }, options);
  return leftOut;
}

const listed = async (sandbox: Sandbox) =>
  (await run(sandbox, "find . -path ./.git -prune -o ! -type d -print | sort")).stdout.trim().split("\n");

it("of a repository the agent gets what git tracks or would add, and no settings of git", async () => {
  const directory = await directoryOf("repo", {
    "src/kept.ts": "1",
    ".gitignore": "ignored\n",
    ignored: "secret",
    untracked: "2",
    deleted: "3",
  });
  await symlink("src/kept.ts", join(directory, "link"));
  await git("git", ["init", "-q", directory]);
  await git("git", ["-C", directory, "add", "-A"]);
  await git("git", ["-C", directory, "remote", "add", "origin", "https://user:password@example.com/x"]);
  await rm(join(directory, "deleted"));
  await writeFile(join(directory, "with space\nand line"), "4");
  await using sandbox = await provider.create({});
  await put(sandbox, directory);
  expect(await listed(sandbox)).toEqual([
    "./.gitignore",
    "./link",
    "./src/kept.ts",
    "./untracked",
    "./with space",
    "and line",
  ]);
});

it("of a directory that is no repository it gets all but installed packages", async () => {
  const directory = await directoryOf("plain", { a: "1", "b/c": "2", "node_modules/x/index.js": "3" });
  await using sandbox = await provider.create({});
  await put(sandbox, directory);
  expect(await listed(sandbox)).toEqual(["./a", "./b/c"]);
});

it("what the agent changed, committed or not, applies to the directory", async () => {
  const directory = await directoryOf("work", { kept: "1\n", changed: "before\n", gone: "2\n" });
  await using sandbox = await provider.create({});
  await put(sandbox, directory);
  const baseline = await takeBaseline(sandbox, workdir, { signal });
  expect((await baseline.diff({ signal })).length).toBe(0);
  const work = [
    "printf 'after\\n' > changed && rm gone && mkdir -p deep/er && printf '\\000\\377' > deep/er/binary",
    "git add -A && git -c user.name=a -c user.email=a@b commit -qm x",
    "printf 'late\\351\\n' > uncommitted && chmod +x uncommitted && mkdir node_modules && touch node_modules/x",
  ].join(" && ");
  expect(await run(sandbox, work)).toMatchObject({ exitCode: 0 });
  await applyPatch(await baseline.diff({ signal }), directory, process.env);
  expect(await readFile(join(directory, "changed"), "utf8")).toBe("after\n");
  expect(await readFile(join(directory, "deep/er/binary"))).toEqual(Buffer.from([0, 255]));
  expect(await readFile(join(directory, "uncommitted"))).toEqual(Buffer.from("late\xe9\n", "latin1"));
  const { stdout } = await git("find", [directory, "-type", "f", "-printf", "%P "]);
  expect(stdout.trim().split(" ").sort()).toEqual(["changed", "deep/er/binary", "kept", "uncommitted"]);
});

it("the agent finds a repository whose first commit is what it was given", async () => {
  const directory = await directoryOf("first", { a: "1\n" });
  await using sandbox = await provider.create({});
  await put(sandbox, directory);
  await takeBaseline(sandbox, workdir, { signal });
  const { stdout } = await run(sandbox, "git status --short; git log --format=%s; git ls-files");
  expect(stdout).toBe("Start\na\n");
});

it("changes past the limit are an error, not a cut patch", async () => {
  await using sandbox = await provider.create({});
  const baseline = await takeBaseline(sandbox, workdir, { signal });
  await run(sandbox, "head -c 40000000 /dev/zero | tr '\\0' x | fold -w 1000 > big");
  await expect(baseline.diff({ signal })).rejects.toMatchObject({ code: "too_large" });
});
