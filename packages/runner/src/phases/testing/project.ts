import { execFile } from "node:child_process";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import type { TaskOrderInput } from "@slipway/contract";
import { onTestFinished } from "vitest";

const run = promisify(execFile);
const identity = {
  GIT_AUTHOR_NAME: "A",
  GIT_AUTHOR_EMAIL: "a@localhost",
  GIT_COMMITTER_NAME: "A",
  GIT_COMMITTER_EMAIL: "a@localhost",
  GIT_CONFIG_GLOBAL: "/dev/null",
  GIT_CONFIG_NOSYSTEM: "1",
};

/** The host's repository of a small Node project without dependencies, whose test adds numbers. */
export interface Project {
  readonly directory: string;
  /** Main's first commit. */
  readonly base: string;
  /** A bundle of all of main. */
  readonly bundle: string;
  readonly order: TaskOrderInput;
  git(...args: readonly string[]): Promise<string>;
  /** Another commit on main, in a bundle of its own. */
  moveMain(files: Readonly<Record<string, string>>): Promise<{ readonly commit: string; readonly bundle: string }>;
  /** Takes an offer in and answers its commit. */
  take(number: number): Promise<string>;
  /** A file of a commit. */
  show(commit: string, path: string): Promise<string>;
  /** How often the project's commands have run, by their names. */
  commandsRun(): Promise<string[]>;
}

const first = {
  "sum.mjs": "export const sum = (a, b) => a - b;\n",
  "list.txt": "one\ntwo\nthree\n",
  "test/sum.test.mjs":
    'import assert from "node:assert";\nimport { sum } from "../sum.mjs";\nassert.equal(sum(2, 3), 5);\n',
};
/** What the scripted agents of tests write. */
export const rightSum = "export const sum = (a, b) => a + b;\n";
export const wrongSum = "export const sum = (a, b) => a * b;\n";

export async function makeProject(): Promise<Project> {
  const root = await mkdtemp(join(tmpdir(), "slipway-project-"));
  onTestFinished(() => rm(root, { recursive: true, force: true, maxRetries: 10 }));
  const directory = join(root, "main");
  const log = join(root, "commands.log");
  const git = async (...args: readonly string[]) => {
    const { stdout } = await run("git", ["-C", directory, ...args], { env: { ...process.env, ...identity } });
    return stdout.trim();
  };
  const commit = async (files: Readonly<Record<string, string>>) => {
    for (const [path, content] of Object.entries(files)) {
      await run("mkdir", ["-p", join(directory, path, "..")]);
      await writeFile(join(directory, path), content);
    }
    await git("add", "--all");
    await git("commit", "--quiet", "--message", "Change main");
    return await git("rev-parse", "HEAD");
  };
  await run("git", ["init", "--quiet", "--initial-branch", "main", directory]);
  const base = await commit(first);
  const bundle = join(root, "base.bundle");
  await git("bundle", "create", "--quiet", bundle, "main");
  const branch = "attempt/sum-1";
  return {
    directory,
    base,
    bundle,
    git,
    order: {
      task: { id: "sum", title: "Add numbers", description: "sum adds its numbers.", expectedFiles: ["sum.mjs"] },
      criteria: [{ id: "adds", statement: "The sum of 2 and 3 is 5." }],
      intent: "A calculator.",
      commands: {
        build: `echo build >> ${log}; node --check sum.mjs`,
        test: `echo test >> ${log}; node test/sum.test.mjs`,
      },
      branch,
      base,
      bundle,
      offers: join(root, "offers"),
    },
    async moveMain(files) {
      const before = await git("rev-parse", "HEAD");
      const moved = { commit: await commit(files), bundle: join(root, `main-${Date.now()}-${Math.random()}.bundle`) };
      await git("bundle", "create", "--quiet", moved.bundle, "main", `^${before}`);
      return moved;
    },
    async take(number) {
      await git(
        "fetch",
        "--quiet",
        join(root, "offers", `${number}.bundle`),
        `+refs/heads/${branch}:refs/offers/${number}`,
      );
      return await git("rev-parse", `refs/offers/${number}`);
    },
    show: (of, path) => git("show", `${of}:${path}`),
    commandsRun: async () => (await readFile(log, "utf8").catch(() => "")).split("\n").filter(Boolean),
  };
}
