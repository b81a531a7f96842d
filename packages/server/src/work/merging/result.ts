import { existsSync } from "node:fs";
import { mkdir, writeFile } from "node:fs/promises";
import { basename, join } from "node:path";
import { type BuildId, type BuildView, createLanes, hasCode, SlipwayError } from "@slipway/contract";
import { createGit, type GitSettings } from "../repository/git.ts";
import { line } from "../repository/objects.ts";
import type { Repositories } from "../repository/repositories.ts";
import { type BuildRepository, repositoryName } from "../repository/repository.ts";
import { replayed } from "./replay.ts";

export interface ResultParts {
  readonly repositories: Repositories;
  readonly environment: GitSettings["environment"];
  readonly warn: (message: string) => void;
}

/** Main of builds that began with somebody's commit, on top of that commit: so that it can be merged where it is from. */
export interface Results extends AsyncDisposable {
  /** Main has moved. What fails is told to the log, and mended by the next one. */
  update(build: BuildId): Promise<void>;
  /** The build has ended. */
  close(build: BuildId): Promise<void>;
}

const resultName = "result.git";
const branchOf = (build: string) => `slipway/${build}`;

/** `directory`: with all that is the build's own. Null: there is nothing to be merged by its past, or nothing yet. */
export function readResult(directory: string): BuildView["result"] {
  const branch = branchOf(basename(directory));
  const repository = join(directory, resultName);
  return existsSync(join(repository, "refs/heads", branch)) ? { repository, branch } : null;
}

export function createResults({ repositories, environment, warn }: ResultParts): Results {
  const lanes = createLanes<BuildId>();
  /** What became of main's commits, by build. */
  const known = new Map<BuildId, Map<string, string>>();

  const update = async (build: BuildId) => {
    const repository = await repositories.of(build);
    if (!(await hasMain(repository))) return;
    const { main, origin } = await repository.create({ from: "empty", atMs: 0 });
    if (origin?.commit == null || origin.object == null) return;
    const directory = join(repositories.directoryOf(build), resultName);
    const git = createGit({ directory, environment });
    await open(directory, environment);
    const input = chunk(Buffer.from(origin.object, "base64"));
    const kept = line(await git.run(["hash-object", "-t", "commit", "-w", "--stdin"], { input }));
    if (kept !== origin.commit) throw new SlipwayError("git_failed", `what is kept of ${origin.commit} is ${kept}`);
    // Its own past is not here, and whoever merges has it.
    await writeFile(join(directory, "shallow"), `${kept}\n`);
    const moved = known.get(build) ?? new Map<string, string>();
    known.set(build, moved);
    const tip = await replayed(git, main, kept, moved);
    await git.run(["update-ref", `refs/heads/${branchOf(build)}`, tip]);
    await git.run(["symbolic-ref", "HEAD", `refs/heads/${branchOf(build)}`]);
  };

  /** One after the other: the branch never goes back. */
  const inLine = (build: BuildId): Promise<void> =>
    lanes.run(build, () => update(build).catch((error: Error) => warn(`${build}: ${error.message}`)));

  return {
    update: inLine,
    async close(build) {
      await inLine(build);
      known.delete(build);
    },
    async [Symbol.asyncDispose]() {
      await lanes.settled();
    },
  };
}

async function hasMain(repository: Pick<BuildRepository, "main">): Promise<boolean> {
  return await repository.main().then(
    () => true,
    (error) => {
      if (hasCode(error, "commit_not_found")) return false;
      throw error;
    },
  );
}

/** Beside the build's own repository, whose objects it has: that one keeps nothing of anybody's past. */
async function open(directory: string, environment: GitSettings["environment"]): Promise<void> {
  const git = createGit({ directory, environment });
  await git.run(["init", "--quiet", "--bare", "--template=", "--object-format=sha1", directory]);
  await mkdir(join(directory, "objects/info"), { recursive: true });
  await writeFile(join(directory, "objects/info/alternates"), `../../${repositoryName}/objects\n`);
}

async function* chunk(bytes: Buffer): AsyncGenerator<Buffer> {
  yield bytes;
}
