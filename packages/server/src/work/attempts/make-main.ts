import { type BuildId, type BuildSource, hasCode, printable, SlipwayError } from "@slipway/contract";
import { type NewEvent, readReport, report, type Store, type WorkingBuild } from "@slipway/engine";
import { cloneRepo, projectPath, run, type Sandbox, type SandboxProvider } from "@slipway/sandbox";
import { openImport, remoteOf } from "../planning/repository.ts";
import type { CreateSource } from "../repository/create.ts";
import { isObjectName } from "../repository/objects.ts";
import type { Repositories } from "../repository/repositories.ts";
import type { BuildRepository } from "../repository/repository.ts";

export interface MainParts {
  readonly provider: Pick<SandboxProvider, "create" | "get" | "list">;
  readonly repository: Pick<BuildRepository, "create" | "main" | "treeOf">;
  /** The repository that a build of mode feature or fix starts from. */
  source(): Promise<BuildSource | null>;
  readonly clock: { now(): number };
  readonly signal: AbortSignal;
}

/** Makes the build's repository unless it exists, and reports main. Fails with `repository_refused` and the like. */
export async function makeMain(parts: MainParts, build: WorkingBuild): Promise<NewEvent> {
  const { repository, clock, signal } = parts;
  const commit = await repository.main().catch(async (error: unknown) => {
    if (!hasCode(error, "commit_not_found")) throw error;
    await using made = new AsyncDisposableStack();
    const from = await sourceOf(parts, build, made);
    return (await repository.create({ from, atMs: clock.now(), signal })).main;
  });
  return report("main.made", mainKey, { commit, tree: await repository.treeOf(commit) });
}

/** The key of its report: a build has one main. */
const mainKey = "main";

/** Whether the build has a main, in another server's repository. */
export async function isMainElsewhere(
  { events }: Pick<Store, "events">,
  repositories: Pick<Repositories, "has">,
  build: BuildId,
): Promise<boolean> {
  const told = await events.find(build, mainKey);
  const made = told && readReport(told);
  return made?.type === "main.made" && !(await repositories.has(build, made.data.commit));
}

async function sourceOf(parts: MainParts, build: WorkingBuild, made: AsyncDisposableStack): Promise<CreateSource> {
  if (build.mode === "new") return "empty";
  const from = await parts.source();
  if (from === null) throw new SlipwayError("invalid_request", "the build names no repository to start from");
  return "directory" in from ? { directory: from.directory } : await clone(parts, build, from.repository, made);
}

const minuteMs = 60_000;
const bundlePath = "/var/tmp/import.bundle";
const ref = "refs/heads/import";

/** Clones in a sandbox that reaches only the remote. Returns one commit, with the files of the remote's HEAD. */
async function clone(
  { provider, signal }: MainParts,
  build: WorkingBuild,
  address: string,
  made: AsyncDisposableStack,
): Promise<CreateSource> {
  const remote = remoteOf(address);
  const sandbox = made.use(await openImport(provider, { build: build.id, purpose: "import" }, remote, signal));
  const cloned = await cloneRepo(sandbox, remote.href, { depth: 1, timeoutMs: 10 * minuteMs, signal });
  if (cloned.exitCode !== 0) throw refused(`git cannot clone ${address}`, cloned.stderr);
  return await bundleOf(sandbox, signal);
}

/** Bundles the files of a clone's HEAD as one commit, because a shallow clone cannot bundle its history. */
export async function bundleOf(sandbox: Sandbox, signal: AbortSignal): Promise<CreateSource> {
  const script = `set -e; git update-ref ${ref} "$(git commit-tree -m Import 'HEAD^{tree}')"; git bundle create -q ${bundlePath} ${ref}
    git rev-parse HEAD; git symbolic-ref --quiet --short HEAD || echo; git cat-file commit HEAD | head -c 65536 | base64 -w 0`;
  const env = Object.fromEntries(
    ["AUTHOR", "COMMITTER"].flatMap((who) => [
      [`GIT_${who}_NAME`, "Slipway"],
      [`GIT_${who}_EMAIL`, "slipway@localhost"],
    ]),
  );
  const packed = await run(sandbox, script, { cwd: projectPath, env, timeoutMs: 10 * minuteMs, signal });
  if (packed.exitCode !== 0) throw refused("the repository has no commit to start from", packed.stderr);
  const [commit = "", branch = "", object = ""] = packed.stdout.split("\n");
  if (!isObjectName(commit)) throw refused("the repository does not use SHA-1 for its objects", commit);
  // The program that opens pull requests gets it, so it must not look like an option.
  const isName = /^[^\s-]\S{0,199}$/.test(branch);
  // Verified where results are built on it.
  const kept = /^[A-Za-z0-9+/]{1,90000}=*$/.test(object) ? { object } : {};
  const origin = { commit, branch: isName ? branch : null, ...kept };
  return { bundle: sandbox.files.read(bundlePath, { signal }), ref, origin };
}

function refused(what: string, words: string): SlipwayError {
  return new SlipwayError("repository_refused", `${what}: ${printable(words).trim().slice(-1000)}`);
}
