import { existsSync } from "node:fs";
import { mkdir, writeFile } from "node:fs/promises";
import { basename, join } from "node:path";
import { type BuildId, type BuildView, createLanes, SlipwayError } from "@slipway/contract";
import { writeRawCommit } from "../repository/commit.ts";
import { createGit, type GitSettings } from "../repository/git.ts";
import { findMain, type Repositories } from "../repository/repositories.ts";
import { repositoryName } from "../repository/repository.ts";
import { replayed } from "./replay.ts";

export interface ResultParts {
  readonly repositories: Repositories;
  readonly environment: GitSettings["environment"];
  readonly warn: (message: string) => void;
}

/** Replays main of builds that started with a user's commit on top of that commit, so that its repository can merge it. */
export interface Results extends AsyncDisposable {
  /** Main has moved. A failure is logged; the next update mends it. */
  update(build: BuildId): Promise<void>;
  /** The build has ended. */
  close(build: BuildId): Promise<void>;
}

const resultName = "result.git";
const branchOf = (build: string) => `slipway/${build}`;

/** `directory`: of the build. Null: there is no result yet, or there cannot be one. */
export function readResult(directory: string): BuildView["result"] {
  const branch = branchOf(basename(directory));
  const repository = join(directory, resultName);
  return existsSync(join(repository, "refs/heads", branch)) ? { repository, branch } : null;
}

export function createResults({ repositories, environment, warn }: ResultParts): Results {
  const lanes = createLanes<BuildId>();
  /** Main's commits and what they were replayed as, by build. */
  const known = new Map<BuildId, Map<string, string>>();

  const update = async (build: BuildId) => {
    const repository = await repositories.of(build);
    if ((await findMain(repository)) === undefined) return;
    const { main, origin } = await repository.create({ from: "empty", atMs: 0 });
    if (origin?.commit == null || origin.object == null) return;
    const directory = join(repositories.directoryOf(build), resultName);
    const git = createGit({ directory, environment });
    await git.run(["init", "--quiet", "--bare", "--template=", "--object-format=sha1", directory]);
    // Reads the objects of the build's own repository, which keeps no commit of the user's.
    await mkdir(join(directory, "objects/info"), { recursive: true });
    await writeFile(join(directory, "objects/info/alternates"), `../../${repositoryName}/objects\n`);
    const kept = await writeRawCommit(git, Buffer.from(origin.object, "base64"));
    if (kept !== origin.commit)
      throw new SlipwayError("git_failed", `the kept object of ${origin.commit} is the commit ${kept}`);
    // The parents of this commit are only in the user's repository.
    await writeFile(join(directory, "shallow"), `${kept}\n`);
    const moved = known.get(build) ?? new Map<string, string>();
    known.set(build, moved);
    const tip = await replayed(git, main, kept, moved);
    await git.run(["update-ref", `refs/heads/${branchOf(build)}`, tip]);
    await git.run(["symbolic-ref", "HEAD", `refs/heads/${branchOf(build)}`]);
  };

  /** One update at a time: the branch never goes back. */
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
