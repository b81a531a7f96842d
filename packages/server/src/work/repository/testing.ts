import { spawn } from "node:child_process";
import { mkdtemp, readdir, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { buffer } from "node:stream/consumers";
import { type CandidateId, newId } from "@slipway/contract";
import { expect } from "vitest";
import { CandidateRefused } from "./quarantine/refusal.ts";
import type { TakeLimits, Taken } from "./quarantine/take.ts";
import { type BuildRepository, openBuildRepository, type TakeOptions } from "./repository.ts";

export const branch = "refs/heads/work";

export interface Site extends AsyncDisposable {
  readonly directory: string;
  readonly repository: BuildRepository;
  readonly main: string;
  /** The repository of a sandbox that was given main. */
  readonly sandbox: Maker;
  take(bundle: AsyncIterable<Uint8Array>, options?: Partial<TakeOptions>): Promise<Taken>;
  /** A bundle of all that the sandbox has made, for those who have main. */
  offer(tip: string, limits?: Partial<TakeLimits>): Promise<Taken>;
  /** The findings of a refusal, after a look that nothing of it has stayed. */
  refusalOf(work: Promise<unknown>): Promise<CandidateRefused["findings"]>;
}

/** A build's repository that began with these files, and a sandbox's that was given them. */
export async function openSite(files: Readonly<Record<string, string>> = { "README.md": "# App\n" }): Promise<Site> {
  const directory = await scratchDirectory();
  const first = await createMaker(join(directory, "first"));
  const commit = await first.commit({ files });
  const from = { bundle: first.bundle(commit, {}), ref: branch, origin: { commit, branch: "work" } };
  const repository = await openBuildRepository({ directory: join(directory, "build"), environment: process.env });
  const { main } = await repository.create({ from, atMs: 1_800_000_000_000 });
  const sandbox = await createMaker(join(directory, "sandbox"));
  await sandbox.git(["fetch", "-q", await saved(directory, repository.bundle({ tip: main })), "refs/heads/main"]);
  const take: Site["take"] = (given, options = {}) =>
    repository.take(given, { id: newCandidate(), ref: branch, base: main, ...options });
  return {
    directory,
    repository,
    main,
    sandbox,
    take,
    offer: (tip, limits = {}) => take(sandbox.bundle(tip, { needs: [main] }), { limits }),
    async refusalOf(work) {
      const error = await work.then(
        () => undefined,
        (reason: unknown) => reason,
      );
      expect(error).toBeInstanceOf(CandidateRefused);
      expect(error).toMatchObject({ code: "candidate_refused", retry: "never" });
      expect(await readdir(join(directory, "build/quarantine"))).toEqual([]);
      return (error as CandidateRefused).findings;
    },
    [Symbol.asyncDispose]: () => rm(directory, { recursive: true, force: true }),
  };
}

export function scratchDirectory(): Promise<string> {
  return mkdtemp("/var/tmp/slipway-git-");
}

async function saved(directory: string, chunks: AsyncIterable<Uint8Array>): Promise<string> {
  const path = join(directory, `${Math.random()}.bundle`);
  await writeFile(path, chunks);
  return path;
}

export const newCandidate = (): CandidateId => newId("cnd");

type Entry = readonly [mode: string, name: string | Buffer, object: string];

/** Makes objects as an attacker does: whatever is written is what they hold. */
export interface Maker {
  readonly directory: string;
  git(args: readonly string[], input?: string | Buffer): Promise<Buffer>;
  object(type: "blob" | "tree" | "commit" | "tag", content: string | Buffer): Promise<string>;
  tree(entries: readonly Entry[]): Promise<string>;
  /** Of a tree as it is, or of files on top of a parent; a file that is null is removed. */
  commit(what: CommitSource): Promise<string>;
  /** With everything that was made since the last one. */
  bundle(tip: string, header: BundleHeader): AsyncGenerator<Buffer>;
}

interface CommitSource {
  readonly tree?: string;
  readonly files?: Readonly<Record<string, string | Buffer | null>>;
  readonly parents?: readonly string[];
}

interface BundleHeader {
  readonly needs?: readonly string[];
  readonly refs?: readonly string[];
}

export async function createMaker(directory: string): Promise<Maker> {
  await runGit("/", ["init", "-q", "--bare", directory]);
  let made: string[] = [];
  const git = (args: readonly string[], input: string | Buffer = "", env = {}) => runGit(directory, args, input, env);
  const object: Maker["object"] = async (type, content) => {
    const name = (await git(["hash-object", "-t", type, "--literally", "-w", "--stdin"], content)).toString().trim();
    made.push(name);
    return name;
  };
  const tree: Maker["tree"] = (entries) =>
    object(
      "tree",
      Buffer.concat(
        entries.flatMap(([mode, name, target]) => [
          ...[Buffer.from(`${mode} `), Buffer.from(name), Buffer.from([0]), Buffer.from(target, "hex")],
        ]),
      ),
    );
  /** By an index of its own, so that trees are as git itself makes them. */
  const treeOf = async (files: NonNullable<CommitSource["files"]>, parent: string | undefined) => {
    const index = { GIT_INDEX_FILE: join(directory, `index-${Math.random()}`) };
    if (parent !== undefined) await git(["read-tree", parent], "", index);
    const lines: string[] = [];
    for (const [path, content] of Object.entries(files)) {
      if (content === null) lines.push(`0 ${"0".repeat(40)}\t${path}`);
      else lines.push(`100644 ${await object("blob", content)}\t${path}`);
    }
    await git(["update-index", "--index-info"], lines.map((text) => `${text}\n`).join(""), index);
    const root = (await git(["write-tree"], "", index)).toString().trim();
    const below = (await git(["ls-tree", "-r", "-t", "-d", "--object-only", root])).toString().split("\n");
    made.push(root, ...below.filter((name) => name !== ""));
    return root;
  };
  return {
    directory,
    git,
    object,
    tree,
    async commit({ tree: given, files = {}, parents = [] }) {
      const root = given ?? (await treeOf(files, parents[0]));
      const who = "Mallory <m@example.com> 1800000000 +0000";
      const above = parents.map((parent) => `parent ${parent}\n`).join("");
      return await object("commit", `tree ${root}\n${above}author ${who}\ncommitter ${who}\n\nwork\n`);
    },
    async *bundle(tip, { needs = [], refs = [branch] }) {
      const names = [...new Set(made)];
      made = [];
      const header = [...needs.map((need) => `-${need} `), ...refs.map((ref) => `${tip} ${ref}`)];
      yield Buffer.from(`# v2 git bundle\n${header.join("\n")}\n\n`);
      yield await git(["pack-objects", "--stdout", "-q"], names.map((name) => `${name}\n`).join(""));
    },
  };
}

async function runGit(cwd: string, args: readonly string[], input: string | Buffer = "", env = {}): Promise<Buffer> {
  const own = { GIT_CONFIG_GLOBAL: "/dev/null", GIT_CONFIG_NOSYSTEM: "1" };
  const child = spawn("git", args, { cwd, env: { ...process.env, ...own, ...env }, stdio: ["pipe", "pipe", "pipe"] });
  const code = new Promise<number | null>((resolve, reject) => child.once("error", reject).once("close", resolve));
  child.stdin.on("error", () => {});
  child.stdin.end(input);
  const [out, complaint, exitCode] = await Promise.all([buffer(child.stdout), buffer(child.stderr), code]);
  if (exitCode !== 0) throw new Error(`git ${args.join(" ")} ended with ${exitCode}: ${complaint}`);
  return out;
}
