import type { Change } from "./repository.ts";

const test = /(^|\/)(tests?|__tests__|specs?)\/|[._-](test|spec)\.[a-z]+$/i;
const maxPaths = 200;

/** Returns the changed files that are tests. */
export function testsAmong(changes: readonly Change[]): { readonly changed: string[]; readonly deleted: string[] } {
  const paths = (isDeleted: boolean) =>
    changes
      .filter(
        (change) => (change.status === "deleted") === isDeleted && change.path.length <= 1024 && test.test(change.path),
      )
      .map(({ path }) => path)
      .slice(0, maxPaths);
  return { changed: paths(false), deleted: paths(true) };
}
