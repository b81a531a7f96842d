import { execFile } from "node:child_process";
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { promisify } from "node:util";
import type { BuildRepository } from "../work/repository/repository.ts";

/** A test of all parts of an app together: what each of two says by itself is right, and is not with the other. */
export const unique = `import assert from "node:assert";
import { readdir } from "node:fs/promises";
import test from "node:test";
test("no two parts say the same", async () => {
  const said = new Map();
  for (const name of await readdir(new URL("../parts/", import.meta.url))) {
    const { default: words } = await import("../parts/" + name);
    assert.ok(!said.has(words), name + " says what " + said.get(words) + " says: " + words);
    said.set(words, name);
  }
});
`;

const run = promisify(execFile);

/** What the tests of a commit say, on files that come from nowhere else. */
export async function testsOf(repository: Pick<BuildRepository, "files">, commit: string): Promise<string> {
  const directory = await mkdtemp(join(tmpdir(), "slipway-main-"));
  try {
    const [archive, cwd] = [join(directory, "main.tar"), join(directory, "main")];
    await mkdir(cwd);
    await writeFile(archive, repository.files(commit));
    await run("tar", ["-xf", archive, "-C", cwd]);
    // Of the tests that this one is among, node's own are to know nothing.
    const { NODE_TEST_CONTEXT: _, ...env } = process.env;
    const args = ["--test", "--test-isolation=none", "tests/*.test.js"];
    return await run(process.execPath, args, { cwd, env }).then(
      () => "green",
      (error: { readonly stdout: string }) => error.stdout,
    );
  } finally {
    await rm(directory, { recursive: true });
  }
}
