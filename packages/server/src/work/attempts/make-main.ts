import { type BuildId, type BuildSource, hasCode, printable, SlipwayError } from "@slipway/contract";
import { type NewEvent, readReport, report, type Store, type WorkingBuild } from "@slipway/engine";
import { cloneRepo, projectPath, run, type Sandbox, type SandboxProvider } from "@slipway/sandbox";
import { remoteOf } from "../planning/repository.ts";
import type { CreateSource } from "../repository/create.ts";
import { isObjectName } from "../repository/objects.ts";
import type { Repositories } from "../repository/repositories.ts";
import type { BuildRepository } from "../repository/repository.ts";

export interface MainParts {
  readonly provider: Pick<SandboxProvider, "create" | "get" | "list">;
  readonly repository: Pick<BuildRepository, "create" | "main" | "treeOf">;
  /** What a build of the modes feature and fix begins with. */
  source(): Promise<BuildSource | null>;
  readonly clock: { now(): number };
  readonly signal: AbortSignal;
}

/** The build's repository, made when it is not there. Fails with `repository_refused` and its like. */
export async function makeMain(parts: MainParts, build: WorkingBuild): Promise<NewEvent> {
  const { repository, clock, signal } = parts;
  const commit = await repository.main().catch(async (error: unknown) => {
    if (!hasCode(error, "commit_not_found")) throw error;
    await using from = await startOf(parts, build);
    return (await repository.create({ from: from.source, atMs: clock.now(), signal })).main;
  });
  return report("main.made", mainKey, { commit, tree: await repository.treeOf(commit) });
}

/** Of the report of it: a build has one main. */
const mainKey = "main";

/** The build has a main, and it is in a repository of another server. */
export async function isMainElsewhere(
  { events }: Pick<Store, "events">,
  repositories: Pick<Repositories, "has">,
  build: BuildId,
): Promise<boolean> {
  const told = await events.find(build, mainKey);
  const made = told && readReport(told);
  return made?.type === "main.made" && !(await repositories.has(build, made.data.commit));
}

interface Start extends AsyncDisposable {
  readonly source: CreateSource;
}

const nothing = async () => {};

async function startOf(parts: MainParts, build: WorkingBuild): Promise<Start> {
  if (build.mode === "new") return { source: "empty", [Symbol.asyncDispose]: nothing };
  const from = await parts.source();
  if (from === null) throw new SlipwayError("invalid_request", "the build names no repository to begin with");
  if ("directory" in from) return { source: { directory: from.directory }, [Symbol.asyncDispose]: nothing };
  return await clone(parts, build, from.repository);
}

const minuteMs = 60_000;
const bundlePath = "/var/tmp/import.bundle";
const ref = "refs/heads/import";

/** In a sandbox that reaches nothing else. What comes out is one commit, with the files of the remote's own branch. */
async function clone({ provider, signal }: MainParts, build: WorkingBuild, address: string): Promise<Start> {
  const remote = remoteOf(address);
  const labels = { build: build.id, purpose: "import" };
  for (const { id } of await provider.list({ labels }, { signal })) await (await provider.get(id)).destroy();
  await using made = new AsyncDisposableStack();
  const sandbox = made.use(
    await provider.create(
      {
        labels,
        lifetimeMs: 60 * minuteMs,
        idleMs: null,
        onEnd: "destroy",
        network: { domains: [remote.hostname], ports: [Number(remote.port || 443)] },
      },
      { signal },
    ),
  );
  const cloned = await cloneRepo(sandbox, remote.href, { depth: 1, timeoutMs: 10 * minuteMs, signal });
  if (cloned.exitCode !== 0) throw refused(`git can not clone ${address}`, cloned.stderr);
  const source = await bundleOf(sandbox, signal);
  const held = made.move();
  return { source, [Symbol.asyncDispose]: () => held.disposeAsync() };
}

/** The files of a clone's HEAD in a bundle of one commit: of a shallow clone there is no other. */
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
  if (packed.exitCode !== 0) throw refused("the repository has no commit to begin with", packed.stderr);
  const [commit = "", branch = "", object = ""] = packed.stdout.split("\n");
  if (!isObjectName(commit)) throw refused("the repository does not use SHA-1 for its objects", commit);
  // A program that opens pull requests gets it: nothing that could pass for an option.
  const isName = /^[^\s-]\S{0,199}$/.test(branch);
  // Whether it is that commit is found out where it is built upon.
  const kept = /^[A-Za-z0-9+/]{1,90000}=*$/.test(object) ? { object } : {};
  const origin = { commit, branch: isName ? branch : null, ...kept };
  return { bundle: sandbox.files.read(bundlePath, { signal }), ref, origin };
}

function refused(what: string, words: string): SlipwayError {
  return new SlipwayError("repository_refused", `${what}: ${printable(words).trim().slice(-1000)}`);
}
