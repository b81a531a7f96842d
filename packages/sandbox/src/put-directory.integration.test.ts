import { execFile } from "node:child_process";
import { chmod, mkdir, mkdtemp, readdir, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { hasCode } from "@slipway/contract";
import { afterEach, beforeEach, expect, it } from "vitest";
import { directoryEntries } from "./put-directory.ts";

const run = promisify(execFile);
const { signal } = new AbortController();
let scratch: string;
let directory: string;
const git = (...argv: string[]) => run("git", ["-C", directory, ...argv]);

beforeEach(async () => {
  scratch = await mkdtemp(join(tmpdir(), "put-directory-"));
  directory = join(scratch, "repository");
  await run("git", ["init", "-q", directory]);
  await writeFile(join(directory, "file"), "1");
});
afterEach(() => rm(scratch, { recursive: true, force: true }));

async function entries() {
  const [paths, leftOut]: [string[], string[]] = [[], []];
  const options = { signal, onBytes: () => {}, onLeftOut: (path: string) => void leftOut.push(path) };
  for await (const { path } of directoryEntries(directory, process.env, options)) paths.push(path);
  return { paths: paths.sort(), leftOut };
}

it("the settings of a repository start no program", async () => {
  const hook = join(scratch, "hook");
  await writeFile(hook, `#!/bin/sh\ntouch '${scratch}/witness'\n`);
  await chmod(hook, 0o755);
  await git("config", "core.fsmonitor", hook);
  expect(await entries()).toEqual({ paths: ["file"], leftOut: [] });
  expect(await readdir(scratch)).not.toContain("witness");
});

it("what is missing in a repository is not fetched", async () => {
  const ssh = join(scratch, "ssh");
  await writeFile(ssh, `#!/bin/sh\ntouch '${scratch}/witness'\n`);
  await chmod(ssh, 0o755);
  await git("config", "extensions.partialClone", "origin");
  await git("config", "core.repositoryFormatVersion", "1");
  await git("config", "remote.origin.url", "ssh://nowhere.invalid/x");
  await git("config", "remote.origin.promisor", "true");
  await git("config", "core.sshCommand", ssh);
  await git("update-index", "--add", "--cacheinfo", `100644,${"1".repeat(40)},.gitignore`);
  await git("update-index", "--skip-worktree", ".gitignore");
  await entries().catch(() => {});
  expect(await readdir(scratch)).not.toContain("witness");
});

it("a file behind a link is left out, though the index names it", async () => {
  await mkdir(join(scratch, "home"));
  await writeFile(join(scratch, "home/secret"), "secret");
  await symlink("../home", join(directory, "link"));
  const { stdout } = await git("hash-object", "-w", "file");
  await git("update-index", "--add", "--cacheinfo", `100644,${stdout.trim()},link/secret`);
  expect(await entries()).toEqual({ paths: ["file", "link"], leftOut: ["link/secret"] });
});

it("a repository that git will not read is refused, not copied with what it ignores", async () => {
  await writeFile(join(directory, ".gitignore"), ".env\n");
  await writeFile(join(directory, ".env"), "secret");
  await writeFile(join(directory, ".git/config"), "[core\n");
  await expect(entries()).rejects.toSatisfy((error) => hasCode(error, "invalid_request"));
});

it("a directory that is no repository is taken as it is", async () => {
  await rm(join(directory, ".git"), { recursive: true });
  expect(await entries()).toEqual({ paths: ["file"], leftOut: [] });
});
