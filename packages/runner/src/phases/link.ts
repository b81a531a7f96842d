import { mkdir, readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { type Git, removeLocks } from "../system/git.ts";

export const author = { name: "Slipway", email: "slipway@localhost" } as const;
/** Where agents find the newest main. */
export const mainRef = "refs/remotes/slipway/main";

/** Fetches the HEAD of another repository found in the workspace, and returns its commit. */
export async function findHead(git: Git, workdir: string, directory: string): Promise<string | undefined> {
  const found = "refs/slipway/found";
  const link = await readFile(join(workdir, ".git"), "utf8").catch(() => "");
  // A runner that was killed while preparing has already fetched it.
  const isFetched = link === linkTo(directory);
  if (!isFetched) await git("fetch", "--quiet", "--no-tags", workdir, `+HEAD:${found}`).catch(() => {});
  const commit = await git("rev-parse", "--verify", "--quiet", found).catch(() => "");
  return commit.trim() || undefined;
}

function linkTo(directory: string): string {
  return `gitdir: ${directory}\n`;
}

/** Applies to the agents' own commits, too. */
const config = `[core]
	repositoryformatversion = 0
	bare = false
[gc]
	auto = 0
[user]
	name = ${author.name}
	email = ${author.email}
`;

/** Makes this the workspace's repository and repairs it, whatever an agent has done to it. */
export async function link(workdir: string, directory: string, branch: string): Promise<void> {
  const path = join(workdir, ".git");
  if ((await readFile(path, "utf8").catch(() => "")) !== linkTo(directory)) {
    await rm(path, { recursive: true, force: true });
    await writeFile(path, linkTo(directory));
  }
  await writeFile(join(directory, "config"), config);
  await mkdir(join(directory, "refs"), { recursive: true });
  const head = await readFile(join(directory, "HEAD"), "utf8").catch(() => "");
  if (!/^(ref: refs\/|[0-9a-f]{40}\n$)/.test(head)) await writeFile(join(directory, "HEAD"), `ref: ${branch}\n`);
}

/** Call it only when no agent is at work. */
export async function unlock(directory: string, branch: string): Promise<void> {
  const refs = ["HEAD", "ORIG_HEAD", "packed-refs", mainRef, branch];
  await removeLocks(directory, [...refs, "index", "slipway-index", "config"]);
}
