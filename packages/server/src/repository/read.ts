import { SlipwayError } from "@slipway/contract";
import type { Git, GitOptions } from "./git.ts";
import { type BlobLimits, readBlobs, split } from "./objects.ts";

const usualLimits: BlobLimits = { eachBytes: 16 * 1024 ** 2, totalBytes: 64 * 1024 ** 2 };

/** The regular files of a commit that are asked for, by path. Every path of the commit is asked about. */
export async function readFiles(
  git: Git,
  commit: string,
  wants: (path: string) => boolean,
  { limits, ...options }: Pick<GitOptions, "signal"> & { readonly limits?: BlobLimits } = {},
): Promise<Map<string, Buffer>> {
  const named = new Map<string, string>();
  const listing = git.stream(["ls-tree", "-r", "-z", "--full-tree", commit], {
    ...options,
    outputBytes: Number.POSITIVE_INFINITY,
  });
  for await (const line of split(listing, 0)) {
    const tab = line.indexOf(0x09);
    const [mode = "", , name = ""] = line.subarray(0, tab).toString("latin1").split(" ");
    const path = line.subarray(tab + 1).toString("utf8");
    if (wants(path) && mode.startsWith("100")) named.set(path, name);
  }
  const blobs = await readBlobs(git, named.values(), limits ?? usualLimits, options);
  return new Map(
    [...named].map(([path, name]) => {
      const content = blobs.get(name)?.content;
      if (content === undefined) throw new SlipwayError("too_large", `${path} is too large to be read`);
      return [path, content];
    }),
  );
}
