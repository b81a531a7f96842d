import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { type BuildId, buildIdSchema } from "@slipway/contract";
import { type BuildRepository, type BuildRepositoryOptions, openBuildRepository } from "./repository/repository.ts";

/** The repositories of all builds, each opened once. */
export interface Repositories {
  of(build: BuildId): Promise<BuildRepository>;
  /** Where all that is the build's own is kept. */
  directoryOf(build: BuildId): string;
  /** Those that have something there. */
  builds(): Promise<readonly BuildId[]>;
}

/** `directory`: with one directory for each build. */
export function createRepositories({ directory, environment }: BuildRepositoryOptions): Repositories {
  const opened = new Map<BuildId, Promise<BuildRepository>>();
  const directoryOf = (build: BuildId) => join(directory, build);
  return {
    directoryOf,
    async builds() {
      const names = await readdir(directory).catch(() => []);
      return names.flatMap((name) => buildIdSchema.safeParse(name).data ?? []);
    },
    of(build) {
      const known = opened.get(build);
      if (known !== undefined) return known;
      const opening = openBuildRepository({ directory: directoryOf(build), environment });
      opened.set(build, opening);
      opening.catch(() => opened.delete(build));
      return opening;
    },
  };
}
