import { isUtf8 } from "node:buffer";
import { apiLimits, type BuildId, hasCode, SlipwayError } from "@slipway/contract";
import type { Store } from "@slipway/engine";
import { mainFileOf } from "../../work/repository/changes.ts";
import { isBinary } from "../../work/repository/objects.ts";
import type { BuildRepository } from "../../work/repository/repository.ts";
import type { BuildMethods } from "./face.ts";

export type Files = Pick<BuildRepository, "main" | "isAncestor" | "changedFiles" | "find">;

export interface FileParts {
  readonly store: Pick<Store, "builds">;
  filesOf(build: BuildId): Promise<Files | undefined>;
}

/** Main's files, for those who show it themselves. What attempts work at is no part of it. */
export function createBuildFiles({ store, filesOf }: FileParts): Pick<BuildMethods, "files" | "file"> {
  const open = async (build: BuildId) => {
    await store.builds.get(build);
    const repository = await filesOf(build);
    const main = await repository?.main().catch((error) => {
      if (!hasCode(error, "commit_not_found")) throw error;
    });
    if (repository === undefined || main === undefined)
      throw new SlipwayError("not_ready", `${build} has no main here`);
    const ofMain = async (commit = main) => {
      const isOfMain = await repository.isAncestor(commit, main).catch((error) => {
        if (hasCode(error, "commit_not_found")) return false;
        throw error;
      });
      if (!isOfMain) throw new SlipwayError("commit_not_found", `main of ${build} has no commit ${commit}`);
      return commit;
    };
    return { repository, ofMain };
  };
  return {
    async files(build, { commit: asked, since, after = "", limit }) {
      const { repository, ofMain } = await open(build);
      const commit = await ofMain(asked);
      const changes = await repository.changedFiles(since === undefined ? null : await ofMain(since), commit);
      const left = changes.filter(({ path }) => path > after).toSorted((a, b) => (a.path < b.path ? -1 : 1));
      const files = left.slice(0, limit).map((file) => ({ ...mainFileOf(file), blob: file.after ?? null }));
      return { commit, files, next: left.length > limit ? (files.at(-1)?.path ?? null) : null };
    },

    async file(build, { commit: asked, path }) {
      const { repository, ofMain } = await open(build);
      const commit = await ofMain(asked);
      const { content, ...found } = await repository.find(commit, path, { mostBytes: apiLimits.maxFileBytes });
      const isText = content !== undefined && !isBinary(content) && isUtf8(content);
      return { commit, path, ...found, content: isText ? content.toString("utf8") : null };
    },
  };
}
