import { SlipwayError } from "@slipway/contract";
import type { Git, GitOptions } from "./git.ts";
import { pathMistake } from "./names.ts";
import { type BlobLimits, readBlobs, split } from "./objects.ts";

const usualLimits: BlobLimits = { eachBytes: 16 * 1024 ** 2, totalBytes: 64 * 1024 ** 2 };

export interface FoundFile {
  readonly type: "file" | "executable" | "link";
  readonly blob: string;
  readonly bytes: number;
  /** Undefined: larger than the limit. */
  readonly content: Buffer | undefined;
}

const types = { "100644": "file", "100755": "executable", "120000": "link" } as const;

/** Finds one entry of a commit's tree by path, without following links. */
export async function findFile(
  git: Git,
  commit: string,
  path: string,
  { mostBytes, ...options }: Pick<GitOptions, "signal"> & { readonly mostBytes: number },
): Promise<FoundFile> {
  const mistake = pathMistake(path);
  if (mistake !== undefined) throw new SlipwayError("invalid_request", `the path ${mistake}`);
  const literal = git.with({ GIT_LITERAL_PATHSPECS: "1" });
  const { stdout } = await literal.run(["ls-tree", "-z", "--full-tree", commit, "--", path], options);
  const [mode = "", , blob = ""] = stdout.toString("latin1").split(/[ \t]/, 3);
  if (mode === "") throw new SlipwayError("file_not_found", `${commit} has no ${path}`);
  const type = types[mode as keyof typeof types];
  if (type === undefined) throw new SlipwayError("not_a_file", `${path} is a directory`);
  const limits = { eachBytes: mostBytes, totalBytes: mostBytes };
  const { bytes = 0, content } = (await readBlobs(git, [blob], limits, options)).get(blob) ?? {};
  return { type, blob, bytes, content };
}

/** Reads the regular files of a commit that `wants` selects; calls it with every path. */
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
      if (content === undefined) throw new SlipwayError("too_large", `${path} is too large to read`);
      return [path, content];
    }),
  );
}
