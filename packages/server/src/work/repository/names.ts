/** Code points that HFS+ ignores when it compares names. */
const ignorable = /[\u200c-\u200f\u202a-\u202e\u206a-\u206f\ufeff]/gu;
/** Control characters, and those that reorder or break a displayed line. */
const unseen = /[\p{Cc}\u2028\u2029\u202a-\u202e\u2066-\u2069]/u;

/** `.git` as any file system may read it: by case, ignorable characters, trailing dots, streams or short names. */
function isGitDirectory(name: string): boolean {
  return /^(\.git|git~[0-9]+)[ .]*(:.*)?$/i.test(name.normalize("NFC").replace(ignorable, ""));
}

/** Returns what is wrong with a path in a tree, or undefined. */
export function pathMistake(path: string): string | undefined {
  if (path.includes("\ufffd")) return "is not UTF-8";
  if (unseen.test(path)) return "has control characters";
  if (path.startsWith("/")) return "is absolute";
  // Some systems read a backslash as a slash.
  for (const name of path.split(/[/\\]/)) {
    if (name === "" || name === "." || name === "..") return "leaves its directory";
    if (isGitDirectory(name)) return "is a git directory";
  }
  return undefined;
}

const mostSteps = 500;

/** Follows a symbolic link and every link on its way. Returns what is wrong, or undefined if it stays in the tree. */
export function linkMistake(path: string, links: ReadonlyMap<string, string>): string | undefined {
  const target = links.get(path) ?? "";
  if (target.startsWith("/")) return "is a symbolic link to an absolute path";
  const here = path.split("/").slice(0, -1);
  const ahead = target.split("/").toReversed();
  for (let steps = 0; ahead.length > 0; steps++) {
    const name = ahead.pop() ?? "";
    if (steps > mostSteps) return "is a symbolic link without an end";
    if (isGitDirectory(name)) return "is a symbolic link into a git directory";
    if (name === "" || name === ".") continue;
    if (name === "..") {
      if (here.pop() === undefined) return "is a symbolic link out of the tree";
      continue;
    }
    const next = links.get([...here, name].join("/"));
    if (next === undefined) here.push(name);
    // The next link has its own finding.
    else if (next.startsWith("/")) return undefined;
    else ahead.push(...next.split("/").toReversed());
  }
  return undefined;
}
