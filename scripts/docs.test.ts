import { existsSync, globSync, readdirSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";

const root = fileURLToPath(new URL("..", import.meta.url));
const docs = globSync(["*.md", "docs/**/*.md", "packages/*/*.md", "packages/sandbox/native/*.md"], { cwd: root });
const packages = readdirSync(join(root, "packages"));

/** Paths in backticks: from the root, from `packages/`, or, in the row of a table, from the folder of the one before. */
function namedIn(line: string): string[] {
  let folder: string | undefined;
  const paths: string[] = [];
  for (const [, text = ""] of line.matchAll(/`([\w.-]+(?:\/[\w.-]+)*\/?)`/g)) {
    const [first = ""] = text.split("/");
    const isFromRoot = /^(packages|scripts|bench|examples|docs)$/.test(first);
    const isFromPackages = packages.includes(first) && /\/(src|native)(\/|$)/.test(text);
    const isBeside =
      !isFromRoot && !isFromPackages && folder !== undefined && line.startsWith("|") && /\.(ts|c|json)$|\/$/.test(text);
    if (isFromRoot && text.includes("/")) paths.push(text);
    else if (isFromPackages) paths.push(join("packages", text));
    else if (isBeside) paths.push(join(folder ?? "", text));
    else continue;
    if (!isBeside) folder = /\/$/.test(text) ? paths.at(-1) : dirname(paths.at(-1) ?? "");
  }
  return paths;
}

test.each(docs)("every file of the repository that %s names exists", (doc) => {
  const text = readFileSync(join(root, doc), "utf8");
  const linked = [...text.matchAll(/\]\((?!https?:|#|mailto:)([^)#\s]+)/g)].map(([, path = ""]) =>
    join(dirname(doc), path),
  );
  const named = text.split("\n").flatMap(namedIn);
  expect([...named, ...linked].filter((path) => !existsSync(join(root, path)))).toEqual([]);
});
