import { existsSync } from "node:fs";
import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { type BuildId, buildIdSchema, hasCode } from "@slipway/contract";
import {
  type BuildRepository,
  type BuildRepositoryOptions,
  openBuildRepository,
  repositoryName,
} from "./repository.ts";

/** Opens the repository of each build once. */
export interface Repositories {
  of(build: BuildId): Promise<BuildRepository>;
  /** Whether the build's repository is on this server and has this commit. Creates nothing. */
  has(build: BuildId, commit: string): Promise<boolean>;
  /** The directory of the build's own files. */
  directoryOf(build: BuildId): string;
  /** Builds that have such a directory. */
  builds(): Promise<readonly BuildId[]>;
}

/** Undefined: the build has no main, not yet or no longer. */
export async function findMain(repository: Pick<BuildRepository, "main">): Promise<string | undefined> {
  return await repository.main().catch((error) => {
    if (hasCode(error, "commit_not_found")) return undefined;
    throw error;
  });
}

/** `directory` has one directory per build. */
export function createRepositories({ directory, environment }: BuildRepositoryOptions): Repositories {
  const opened = new Map<BuildId, Promise<BuildRepository>>();
  const directoryOf = (build: BuildId) => join(directory, build);
  const of = (build: BuildId) => {
    const known = opened.get(build);
    if (known !== undefined) return known;
    const opening = openBuildRepository({ directory: directoryOf(build), environment });
    opened.set(build, opening);
    opening.catch(() => opened.delete(build));
    return opening;
  };
  return {
    of,
    async has(build, commit) {
      if (!existsSync(join(directoryOf(build), repositoryName))) return false;
      try {
        await (await of(build)).treeOf(commit);
        return true;
      } catch (error) {
        if (hasCode(error, "commit_not_found")) return false;
        throw error;
      }
    },
    directoryOf,
    async builds() {
      const names = await readdir(directory).catch(() => []);
      return names.flatMap((name) => buildIdSchema.safeParse(name).data ?? []);
    },
  };
}
