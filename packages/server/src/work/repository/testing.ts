import { spawn } from "node:child_process";
import { mkdtemp, readdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { buffer } from "node:stream/consumers";
import { type CandidateId, newId } from "@slipway/contract";
import type { WorkingBuild } from "@slipway/engine";
import { expect } from "vitest";
import type { Place } from "../../testing/world/place.ts";
import { openBuildSecrets } from "../build-secrets.ts";
import { CandidateRefused } from "./quarantine/refusal.ts";
import type { TakeLimits, Taken } from "./quarantine/take.ts";
import { openBuildRepository, type TakeOptions } from "./repository.ts";

export const branch = "refs/heads/work";

export type RepositoryPart = Awaited<ReturnType<typeof openRepositoryPart>>;

/** A build's repository that began with these files, and a sandbox's that was given them. */
export async function openRepositoryPart(
  files: "empty" | "small" | Readonly<Record<string, string>>,
  { directory }: Place,
) {
  const build: WorkingBuild = { id: newId("bld"), account: "ada", project: "shop", mode: "new", request: "A shop" };
  const repository = await openBuildRepository({ directory: join(directory, "build"), environment: process.env });
  const from =
    files === "empty" ? files : await bundleWith(files === "small" ? small : files, join(directory, "first"));
  const { main } = await repository.create({ from, atMs: 1_800_000_000_000 });
  /** The repository of a sandbox that was given main. */
  const sandbox = await createMaker(join(directory, "sandbox"));
  await sandbox.git(["fetch", "-q", await saved(directory, repository.bundle({ tip: main })), "refs/heads/main"]);
  const take = (given: AsyncIterable<Uint8Array>, options: Partial<TakeOptions> = {}) =>
    repository.take(given, { id: newCandidate(), ref: branch, base: main, ...options });
  let last = main;
  return {
    build,
    repository,
    repositories: { of: async () => repository },
    secrets: openBuildSecrets(join(directory, "builds")),
    main,
    sandbox,
    take,
    /** A bundle of all that the sandbox has made, for those who have main. */
    offer: (tip: string, limits: Partial<TakeLimits> = {}): Promise<Taken> =>
      take(sandbox.bundle(tip, { needs: [main] }), { limits }),
    /** The next commit after main: these files on top of the ones before; null removes one. */
    async commit(changes: Readonly<Record<string, string | null>>): Promise<string> {
      const tip = await sandbox.commit({ files: changes, parents: [last] });
      await take(sandbox.bundle(tip, { needs: [last] }), { base: last });
      last = tip;
      return tip;
    },
    /** The findings of a refusal, after a look that nothing of it has stayed. */
    async refusalOf(work: Promise<unknown>): Promise<CandidateRefused["findings"]> {
      const error = await work.then(
        () => undefined,
        (reason: unknown) => reason,
      );
      expect(error).toBeInstanceOf(CandidateRefused);
      expect(error).toMatchObject({ code: "candidate_refused", retry: "never" });
      expect(await readdir(join(directory, "build/quarantine"))).toEqual([]);
      return (error as CandidateRefused).findings;
    },
  };
}

const small = { "README.md": "# App\n" };

async function bundleWith(files: Readonly<Record<string, string>>, directory: string) {
  const maker = await createMaker(directory);
  const commit = await maker.commit({ files });
  return { bundle: maker.bundle(commit, {}), ref: branch, origin: { commit, branch: "work" } };
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
