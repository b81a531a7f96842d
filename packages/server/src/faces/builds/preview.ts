import { type BuildId, hasCode, type PreviewView, SlipwayError } from "@slipway/contract";
import type { Store } from "@slipway/engine";
import { readInstead } from "../../work/preview/instead.ts";
import type { Previews } from "../../work/preview/preview.ts";
import type { BuildRepository } from "../../work/repository/repository.ts";
import type { BuildMethods } from "./face.ts";

export interface PreviewParts {
  readonly store: Pick<Store, "builds">;
  /** Undefined: sandboxes are of a kind in which nothing is to be seen. */
  previews(): Pick<Previews, "open" | "close" | "end" | "addressOf" | "isNothing"> | undefined;
  mainOf(build: BuildId): Promise<Pick<BuildRepository, "main"> | undefined>;
  repositoryOf(build: BuildId): string;
}

export function createBuildPreview({
  store,
  previews,
  mainOf,
  repositoryOf,
}: PreviewParts): Pick<BuildMethods, "openPreview" | "closePreview"> {
  const find = async (build: BuildId) => {
    const { id, account, project, mode, request, status } = await store.builds.get(build);
    const shown = previews();
    if (shown === undefined) throw new SlipwayError("capability_missing", `there is nothing to be seen of ${build}`);
    if (status === "cancelled") throw cancelled(build);
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
      const address = await shown.open(working, main);
      // A cancel may have come before it: what that has ended stays so.
      if ((await store.builds.get(build)).status === "cancelled") {
        await shown.end(build);
        throw cancelled(build);
      }
      const instead = (await shown.isNothing(build)) ? await readInstead({ store, repositoryOf }, build, main) : null;
      return { build, address, instead };
    },

    async closePreview(build): Promise<PreviewView> {
      const { shown, working } = await find(build);
      await shown.close(working);
      return { build, address: null, instead: null };
    },
  };
}

function cancelled(build: BuildId): SlipwayError {
  return new SlipwayError("build_ended", `${build} was cancelled, and its preview with it`);
}
