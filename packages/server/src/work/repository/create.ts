import { mkdir, rename, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { writeCommit } from "./commit.ts";
import { createGit, type Git, type GitSettings } from "./git.ts";
import { importDirectory, type Origin } from "./import.ts";
import { line } from "./objects.ts";
import { openQuarantine } from "./quarantine/quarantine.ts";
import { type BundleLimits, receive } from "./quarantine/take.ts";

export interface CreateOptions {
  readonly from: CreateSource;
  readonly atMs: number;
  readonly limits?: Partial<BundleLimits>;
  readonly signal?: AbortSignal | undefined;
}

export type CreateSource =
  | "empty"
  /** A user's repository or plain files. */
  | { readonly directory: string; readonly uncommitted?: "refuse" | "leave-out" }
  /** A sandbox's clone, without its history. `origin` is what the sandbox claims: verify before building on it. */
  | {
      readonly bundle: AsyncIterable<Uint8Array>;
      readonly ref: string;
      readonly origin: Pick<Origin, "commit" | "branch" | "object">;
    };

export const mainRef = "refs/heads/main";
export const originFile = "origin.json";

/** Overrides in-tree attributes: they could hide files from sandboxes, rewrite them, or choose a merge driver. */
const attributes =
  "* -export-ignore -export-subst -ident -filter -working-tree-encoding -text !eol !crlf !diff !merge !conflict-marker-size\n";

interface Place {
  readonly directory: string;
  readonly environment: GitSettings["environment"];
  readonly scratch: string;
}

/** Makes a bare repository whose main is one commit: in a scratch directory, then in place by one rename. */
export async function createRepository(place: Place, options: CreateOptions & { readonly limits: BundleLimits }) {
  const made = join(place.scratch, "new.git");
  const git = createGit({ directory: made, environment: place.environment });
  await mkdir(made, { mode: 0o700 });
  await git.run(["init", "--quiet", "--bare", "--template=", "--initial-branch=main", "--object-format=sha1", made]);
  const { tree, message, origin } = await bringIn(git, place, options);
  await mkdir(join(made, "info"), { recursive: true });
  await writeFile(join(made, "info/attributes"), attributes);
  await writeFile(join(made, originFile), JSON.stringify(origin));
  const commit = await writeCommit(git, { tree, parents: [], message, atMs: options.atMs });
  await git.run(["update-ref", mainRef, commit]);
  await rename(made, place.directory).catch((error: NodeJS.ErrnoException) => {
    // Another process made it first.
    if (error.code !== "ENOTEMPTY" && error.code !== "EEXIST") throw error;
  });
}

async function bringIn(
  git: Git,
  { environment, scratch }: Place,
  { from, limits, signal }: CreateOptions & { readonly limits: BundleLimits },
): Promise<{ readonly tree: string; readonly message: string; readonly origin: Origin | null }> {
  if (from === "empty") {
    return { tree: line(await git.run(["mktree"])), message: "Begin with nothing", origin: null };
  }
  if ("bundle" in from) {
    await using quarantine = await openQuarantine(scratch, git);
    const { tree } = await receive(quarantine, from.bundle, { ref: from.ref, known: [], limits, signal });
    await quarantine.keep();
    const origin = { ...from.origin, untracked: { paths: [], count: 0 } };
    return { tree, message: importMessage(origin), origin };
  }
  const { directory, uncommitted = "refuse" } = from;
  const { tree, origin } = await importDirectory(git, { directory, uncommitted, environment, limits, scratch, signal });
  return { tree, message: importMessage(origin), origin };
}

function importMessage({ commit }: Origin): string {
  return commit === null ? "Import files" : `Import ${commit}`;
}
