import type { Git, GitOptions } from "./git.ts";
import { fieldsOf } from "./objects.ts";
import { asRefusal } from "./quarantine/refusal.ts";

/** `conflicts`: the first of the paths that git cannot merge. */
export type Merged =
  | { readonly clean: true; readonly tree: string }
  | { readonly clean: false; readonly conflicts: readonly string[] };

const mostConflicts = 50;

/** Merges two commits into a tree, by their own merge base. */
export async function mergeTrees(
  git: Git,
  ours: string,
  theirs: string,
  options: Pick<GitOptions, "signal"> = {},
): Promise<Merged> {
  const args = ["merge-tree", "--write-tree", "-z", "--messages", ours, theirs];
  return await asRefusal("git cannot merge it", async () => {
    const { exitCode, stdout } = await git.run(args, { ...options, expected: [0, 1] });
    const [tree = "", ...fields] = fieldsOf(stdout);
    if (exitCode === 0) return { clean: true, tree };
    return { clean: false, conflicts: [...parseConflicts(fields)].slice(0, mostConflicts) };
  });
}

/** Fields `<mode> <name> <stage>\t<path>`, an empty one, then per message: how many paths, the paths, its kind, its text. */
function parseConflicts(fields: readonly string[]): Set<string> {
  const found = new Set<string>();
  const rest = fields.values();
  for (const field of rest) {
    if (field === "") break;
    found.add(field.slice(field.indexOf("\t") + 1));
  }
  for (const count of rest) {
    const paths = Array.from({ length: Number(count) }, () => rest.next().value ?? "");
    const kind = rest.next().value ?? "";
    rest.next();
    const [first] = paths;
    // A conflict such as a split directory rename has no stages.
    if (kind.startsWith("CONFLICT") && first !== undefined && !paths.some((path) => found.has(path))) found.add(first);
  }
  return found;
}
