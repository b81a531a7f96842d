import { type BuildId, hasCode, type PreviewView, SlipwayError } from "@slipway/contract";
import type { Store } from "@slipway/engine";
import type { BuildFace } from "./build-face.ts";
import type { Previews } from "./preview/preview.ts";
import type { BuildRepository } from "./repository/repository.ts";

export interface PreviewParts {
  readonly store: Pick<Store, "builds">;
  /** Undefined: sandboxes are of a kind in which nothing is to be seen. */
  previews(): Pick<Previews, "open" | "close" | "addressOf"> | undefined;
  mainOf(build: BuildId): Promise<Pick<BuildRepository, "main"> | undefined>;
}

export function createBuildPreview({
  store,
  previews,
  mainOf,
}: PreviewParts): Pick<BuildFace, "openPreview" | "closePreview"> {
  const find = async (build: BuildId) => {
    const { id, account, project, mode, request, status } = await store.builds.get(build);
    const shown = previews();
    if (shown === undefined) throw new SlipwayError("capability_missing", `there is nothing to be seen of ${build}`);
    if (status === "cancelled")
      throw new SlipwayError("build_ended", `${build} was cancelled, and its preview with it`);
    return { shown, working: { id, account, project, mode, request } };
  };
  return {
    async openPreview(build): Promise<PreviewView> {
      const { shown, working } = await find(build);
      const main = await (await mainOf(build))?.main().catch((cause) => {
        if (!hasCode(cause, "commit_not_found")) throw cause;
        return undefined;
      });
      if (main === undefined) throw new SlipwayError("not_ready", `${build} has no main yet`);
      return { build, address: await shown.open(working, main) };
    },

    async closePreview(build): Promise<PreviewView> {
      const { shown, working } = await find(build);
      await shown.close(working);
      return { build, address: null };
    },
  };
}
