import { type ChildProcess, execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { readdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { setTimeout as delay } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { openWorld, type WorldWith } from "../../testing/world.ts";
import { openBuildRepository } from "./repository.ts";

vi.setConfig({ testTimeout: 300_000 });

const run = promisify(execFile);
const fixture = fileURLToPath(new URL("fixture.ts", import.meta.url));

let site: WorldWith<"repository">;
let directory: string;
let bare: string;
const started: ChildProcess[] = [];

beforeEach(async () => {
  site = await openWorld({ repository: "small" });
  directory = join(site.directory, "build");
  bare = join(directory, "repository.git");
});
afterEach(async () => {
  for (const child of started.splice(0)) killAll(child);
  await site[Symbol.asyncDispose]();
});

/** With its own group, so that it can be killed together with the gits it has started. */
function start(...args: readonly string[]) {
  const child = spawn(process.execPath, [fixture, directory, ...args], {
    detached: true,
    stdio: ["pipe", "pipe", "inherit"],
    env: process.env,
  });
  started.push(child);
  const said: string[] = [];
  const lines = createInterface(child.stdout);
  lines.on("line", (line) => said.push(line));
  return { child, said, lines };
}

function killAll({ pid }: ChildProcess): void {
  try {
    process.kill(-(pid ?? 0), "SIGKILL");
  } catch {
    // It has ended already.
  }
}

async function candidateFile(): Promise<string> {
  const commit = await site.sandbox.commit({ files: { "work.txt": "done\n" }, parents: [site.main] });
  const path = join(site.directory, "work.bundle");
  await writeFile(path, site.sandbox.bundle(commit, { needs: [site.main] }));
  return path;
}

const fsck = async () => await run("git", ["--git-dir", bare, "fsck", "--strict", "--full", "--no-dangling"]);

test.each([["alone"], ["with the gits it has started"]])(
  "a process that is killed %s, at any moment, leaves main at a commit that it was moved to",
  async (which) => {
    const bundle = await candidateFile();
    const kills = 12;
    for (let count = 0; count < kills; count++) {
      const { child, said, lines } = start("merge", bundle, site.main);
      await once(lines, "line");
      // Spread over what one merge takes.
      await delay((count * 250) / kills);
      if (which === "alone") child.kill("SIGKILL");
      else killAll(child);
      await once(child, "close");
      const repository = await openBuildRepository({ directory, environment: process.env });
      const main = await repository.main();
      const moving = said.findLast((line) => line.startsWith("moving"))?.split(" ") ?? [];
      const done = said.findLast((line) => line.startsWith("moved"))?.split(" ")[1];
      const [, from, to, id] = moving;
      if (to !== undefined) expect([from, to, done]).toContain(main);
      if (id !== undefined) expect([...(await repository.candidates()).keys()]).toContain(id);
      await fsck();
      const next = await repository.commit({
        tree: (await treeOf(main)).trim(),
        parents: [main],
        message: `After ${count}`,
        atMs: 0,
      });
      // A git that outlives its process may still move main, once.
      await vi.waitFor(async () => {
        const now = await repository.main();
        expect([main, to]).toContain(now);
        if (now === main) expect(await repository.moveMain(main, next)).toBe(true);
      });
      killAll(child);
      await openBuildRepository({ directory, environment: process.env });
      expect(await readdir(join(directory, "quarantine"))).toEqual([]);
    }
  },
);

const treeOf = async (commit: string) =>
  (await run("git", ["--git-dir", bare, "rev-parse", `${commit}^{tree}`])).stdout;

test("a lock that a killed git has left stops nobody", async () => {
  const { repository, main } = site;
  const to = await repository.commit({ tree: (await treeOf(main)).trim(), parents: [main], message: "Next", atMs: 0 });
  await writeFile(join(bare, "refs/heads/main.lock"), "");
  expect(await repository.moveMain(main, to)).toBe(true);
  expect(await repository.moveMain(main, to)).toBe(false);
  expect(existsSync(join(bare, "refs/heads/main.lock"))).toBe(false);
  await writeFile(join(bare, "packed-refs.lock"), "");
  const again = await openBuildRepository({ directory, environment: process.env });
  expect(existsSync(join(bare, "packed-refs.lock"))).toBe(false);
  expect(await again.main()).toBe(to);
});

test("of two processes that move main at once, one does", async () => {
  const { repository } = site;
  const tree = (await treeOf(site.main)).trim();
  const racers = [start("race"), start("race")];
  await Promise.all(racers.map(({ lines }) => once(lines, "line")));
  let from = site.main;
  for (let round = 0; round < 10; round++) {
    const commits = await Promise.all(
      racers.map((_, index) => repository.commit({ tree, parents: [from], message: `${round} ${index}`, atMs: 0 })),
    );
    const answers = racers.map(({ lines }) => once(lines, "line"));
    for (const [index, { child }] of racers.entries()) child.stdin?.write(`${from} ${commits[index]}\n`);
    const results = (await Promise.all(answers)).flat();
    expect(results.toSorted()).toEqual(["main_moved", "true"]);
    from = await repository.main();
    expect(from).toBe(commits[results.indexOf("true")]);
  }
});

test("what a killed process had in quarantine is removed, what a living one has is not", async () => {
  const bundle = await candidateFile();
  const { child, lines } = start("merge", bundle, site.main);
  await once(lines, "line");
  const gate = Promise.withResolvers<void>();
  const slow = async function* () {
    yield Buffer.from("# v2 git bundle\n");
    await gate.promise;
  };
  const taking = site.take(slow());
  await vi.waitFor(async () => expect(await readdir(join(directory, "quarantine"))).toContainEqual(ownName()));
  killAll(child);
  await once(child, "close");
  await openBuildRepository({ directory, environment: process.env });
  expect(await readdir(join(directory, "quarantine"))).toEqual([ownName()]);
  gate.resolve();
  await expect(taking).rejects.toMatchObject({ code: "candidate_refused" });
  expect(await readdir(join(directory, "quarantine"))).toEqual([]);
});

const ownName = () => expect.stringMatching(new RegExp(`^${process.pid}-`));
