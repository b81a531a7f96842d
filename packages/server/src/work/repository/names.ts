/** Code points that HFS+ leaves out when it compares names. */
const ignorable = /[\u200c-\u200f\u202a-\u202e\u206a-\u206f\ufeff]/gu;
/** Control characters, and those that reorder or break a line that shows them. */
const unseen = /[\p{Cc}\u2028\u2029\u202a-\u202e\u2066-\u2069]/u;

/** `.git` as any file system may read it: by case, ignorable characters, trailing dots, streams or short names. */
function isGitDirectory(name: string): boolean {
  return /^(\.git|git~[0-9]+)[ .]*(:.*)?$/i.test(name.normalize("NFC").replace(ignorable, ""));
}

/** What is wrong with a path in a tree; undefined: nothing is. */
export function pathMistake(path: string): string | undefined {
  if (path.includes("\ufffd")) return "is not UTF-8";
  if (unseen.test(path)) return "has control characters";
  if (path.startsWith("/")) return "is absolute";
  // Other systems take a backslash for a slash.
  for (const name of path.split(/[/\\]/)) {
    if (name === "" || name === "." || name === "..") return "leads out of its directory";
    if (isGitDirectory(name)) return "is git's own";
  }
  return undefined;
}

const mostSteps = 500;

/** What is wrong with where a symbolic link leads, with every link on the way followed; undefined: it stays in the tree. */
export function linkMistake(path: string, links: ReadonlyMap<string, string>): string | undefined {
  const target = links.get(path) ?? "";
  if (target.startsWith("/")) return "is a symbolic link to an absolute path";
  const here = path.split("/").slice(0, -1);
  const ahead = target.split("/").toReversed();
  for (let steps = 0; ahead.length > 0; steps++) {
    const name = ahead.pop() ?? "";
    if (steps > mostSteps) return "is a symbolic link that leads nowhere";
    if (isGitDirectory(name)) return "is a symbolic link into git's own";
    if (name === "" || name === ".") continue;
    if (name === "..") {
      if (here.pop() === undefined) return "is a symbolic link out of the tree";
      continue;
    }
    const next = links.get([...here, name].join("/"));
    if (next === undefined) here.push(name);
    // That one has a finding of its own.
    else if (next.startsWith("/")) return undefined;
    else ahead.push(...next.split("/").toReversed());
  }
  return undefined;
}
