import type { Git, GitOptions } from "./git.ts";
import { linkMistake, pathMistake } from "./names.ts";
import { readBlobs, split } from "./objects.ts";
import type { Finding } from "./quarantine/refusal.ts";

export interface TreeLimits {
  /** Files and directories. */
  readonly entries: number;
  readonly depth: number;
  readonly pathBytes: number;
  readonly fileBytes: number;
  readonly totalBytes: number;
}

export const usualTreeLimits: TreeLimits = {
  entries: 100_000,
  depth: 50,
  pathBytes: 1000,
  fileBytes: 64 * 1024 ** 2,
  totalBytes: 1024 ** 3,
};

const mostFindings = 50;
/** Bounds the time to follow them all. */
const mostLinks = 1000;
const linkBytes = 1000;
const modes = ["100644", "100755", "040000", "120000"];

/** Finds what is wrong with a tree. Stops early where the walk could take too long. */
export async function checkTree(
  git: Git,
  tree: string,
  limits: TreeLimits,
  options: Pick<GitOptions, "signal"> = {},
): Promise<Finding[]> {
  const findings: Finding[] = [];
  const links = new Map<string, string>();
  let entries = 0;
  let totalBytes = 0;
  const listing = git.stream(["ls-tree", "-r", "-t", "-z", "-l", "--full-tree", tree], {
    ...options,
    outputBytes: Number.POSITIVE_INFINITY,
  });
  for await (const line of split(listing, 0)) {
    const { mode, name, bytes, path, pathBytes } = parseEntry(line);
    totalBytes += bytes;
    const message = entryMistake({ mode, bytes, path, pathBytes }, limits);
    if (message !== undefined) findings.push({ path: path.slice(0, limits.pathBytes), message });
    else if (mode === "120000") links.set(path, name);
    const endless =
      (++entries > limits.entries && `has more than ${limits.entries} files and directories`) ||
      (totalBytes > limits.totalBytes && `has more than ${limits.totalBytes} bytes`) ||
      (links.size > mostLinks && `has more than ${mostLinks} symbolic links`);
    if (endless) findings.push({ path: null, message: `the tree ${endless}` });
    if (endless || findings.length >= mostFindings || path.split("/").length > limits.depth) return findings;
  }
  return [...findings, ...(await checkLinks(git, links, options))];
}

interface Entry {
  readonly mode: string;
  readonly name: string;
  readonly bytes: number;
  readonly path: string;
  readonly pathBytes: number;
}

/** A line such as `100644 blob <name>    1234\tpath`; a directory has `-` for its size. */
function parseEntry(line: Buffer): Entry {
  const tab = line.indexOf(0x09);
  const [mode = "", , name = "", size = ""] = line.subarray(0, tab).toString("latin1").split(/ +/);
  const path = line.subarray(tab + 1);
  return { mode, name, bytes: Number(size) || 0, path: path.toString("utf8"), pathBytes: path.length };
}

function entryMistake({ mode, bytes, path, pathBytes }: Omit<Entry, "name">, limits: TreeLimits): string | undefined {
  if (pathBytes > limits.pathBytes) return `is longer than ${limits.pathBytes} bytes`;
  if (path.split("/").length > limits.depth) return `is nested deeper than ${limits.depth} directories`;
  if (mode === "160000") return "is a submodule";
  if (!modes.includes(mode)) return `has the mode ${mode}`;
  if (mode === "120000" && bytes > linkBytes) return `is a symbolic link of more than ${linkBytes} bytes`;
  if (bytes > limits.fileBytes) return `has ${bytes} bytes, more than ${limits.fileBytes}`;
  return pathMistake(path);
}

async function checkLinks(
  git: Git,
  named: ReadonlyMap<string, string>,
  options: Pick<GitOptions, "signal">,
): Promise<Finding[]> {
  const most = { eachBytes: linkBytes, totalBytes: linkBytes * mostLinks };
  const blobs = await readBlobs(git, named.values(), most, options);
  const targets = [...named].map(([path, name]) => [path, blobs.get(name)?.content?.toString("utf8") ?? ""] as const);
  const links = new Map(targets);
  return [...links.keys()].flatMap((path) => {
    const message = linkMistake(path, links);
    return message === undefined ? [] : [{ path, message }];
  });
}
