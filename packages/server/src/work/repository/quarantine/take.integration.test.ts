import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { openWorld, type WorldWith } from "../../../testing/world.ts";
import type { TakeOptions } from "../repository.ts";
import { type Maker, newCandidate } from "../testing.ts";

let site: WorldWith<"repository">;
let sandbox: Maker;

beforeAll(async () => {
  site = await openWorld({
    repository: {
      "README.md": "# App\n",
      "src/sum.ts": "export const sum = (a: number, b: number) => a + b;\n",
      "src/sum.test.ts": [
        'test("adds", () => {',
        "  expect(sum(1, 2)).toBe(3);",
        "  expect(sum(2, 2)).toBe(4);",
        "});",
        'test("takes zero", () => expect(sum(0, 0)).toBe(0));',
        "",
      ].join("\n"),
      "src/old.test.ts": 'test("old", () => expect(old).toBe(1));\n',
      "config.txt": "key=none\n",
    },
  });
  sandbox = site.sandbox;
});
afterAll(() => site[Symbol.asyncDispose]());

describe("a good bundle", () => {
  test("becomes a candidate, with what it changes", async () => {
    const id = newCandidate();
    const commit = await sandbox.commit({ files: { "src/new.ts": "1\n", "README.md": null }, parents: [site.main] });
    const taken = await site.take(sandbox.bundle(commit, { needs: [site.main] }), { id });
    expect(taken).toMatchObject({
      commit,
      commits: 1,
      empty: false,
      secrets: [],
      binaries: [],
      unread: [],
    });
    expect(taken.changes.map(({ path, change }) => [path, change])).toEqual([
      ["README.md", "deleted"],
      ["src/new.ts", "added"],
    ]);
    expect((await site.repository.candidates()).get(id)).toBe(commit);
    expect(await site.repository.isAncestor(site.main, commit)).toBe(true);
    expect(await readdir(join(site.directory, "build/quarantine"))).toEqual([]);
    await site.repository.discard(id);
    await site.repository.discard(id);
    expect((await site.repository.candidates()).has(id)).toBe(false);
  });

  test("may come twice, and an id is of one commit only", async () => {
    const id = newCandidate();
    const commit = await sandbox.commit({ files: { twice: "1\n" }, parents: [site.main] });
    const chunks = await Array.fromAsync(sandbox.bundle(commit, { needs: [site.main] }));
    const again = async function* () {
      yield* chunks;
    };
    const first = await site.take(again(), { id });
    expect(await site.take(again(), { id })).toEqual(first);
    const other = await sandbox.commit({ files: { twice: "2\n" }, parents: [site.main] });
    await expect(site.take(sandbox.bundle(other, { needs: [site.main] }), { id })).rejects.toMatchObject({
      code: "candidate_exists",
    });
    expect((await site.repository.candidates()).get(id)).toBe(commit);
  });

  test("may come byte by byte, and with other chunks after its end", async () => {
    const commit = await sandbox.commit({ files: { slow: "1\n" }, parents: [site.main] });
    const all = Buffer.concat(await Array.fromAsync(sandbox.bundle(commit, { needs: [site.main] })));
    const bytes = async function* () {
      for (const byte of all) yield Buffer.from([byte]);
    };
    expect(await site.take(bytes())).toMatchObject({ commit });
  });
});

describe("what is told of a candidate", () => {
  test("that it changes nothing", async () => {
    const commit = await sandbox.commit({ parents: [site.main] });
    expect(await site.offer(commit)).toMatchObject({ empty: true, changes: [] });
  });

  test("tests that were emptied, changed or deleted", async () => {
    const emptied = 'test("adds", () => {});\ntest.skip("takes zero", () => {});\n';
    const commit = await sandbox.commit({
      files: { "src/sum.test.ts": emptied, "src/old.test.ts": null },
      parents: [site.main],
    });
    expect((await site.offer(commit)).tests).toEqual([
      { path: "src/old.test.ts", change: "deleted", emptied: 0 },
      { path: "src/sum.test.ts", change: "changed", emptied: 2 },
    ]);
  });

  test("no tests that are new or only moved as they are", async () => {
    const moved = await sandbox.git(["show", `${site.main}:src/sum.test.ts`]);
    const files = { "src/sum.test.ts": null, "src/add.test.ts": moved, "src/new.test.ts": "test('x', () => {})\n" };
    const { tests } = await site.offer(await sandbox.commit({ files, parents: [site.main] }));
    expect(tests).toEqual([{ path: "src/sum.test.ts", change: "renamed", emptied: 0 }]);
  });

  test("files that look like secrets, without the secret", async () => {
    const key = `-----BEGIN OPENSSH ${"PRIVATE"} KEY-----\nabc\n`;
    const token = `gh${"p_"}${"a".repeat(36)}`;
    const files = {
      ".env": "A=1\n",
      ".env.example": "A=\n",
      "deploy/server.pem": key,
      "config.txt": `key=none\ntoken=${token}\n`,
      "deploy/id_ed25519": "x\n",
    };
    const { secrets } = await site.offer(await sandbox.commit({ files, parents: [site.main] }));
    expect(secrets).toEqual([
      { path: ".env", kind: "environment file", line: null },
      { path: "config.txt", kind: "GitHub token", line: 2 },
      { path: "deploy/id_ed25519", kind: "private key", line: null },
      { path: "deploy/server.pem", kind: "private key", line: 1 },
    ]);
    expect(JSON.stringify(secrets)).not.toContain(token);
  });

  test("binaries over a size, and what was too large to look into", async () => {
    const files = {
      "icon.png": Buffer.alloc(1000),
      "movie.bin": Buffer.alloc(300_000),
      "large.txt": "x".repeat(1024 ** 2 + 1),
    };
    expect(await site.offer(await sandbox.commit({ files, parents: [site.main] }))).toMatchObject({
      binaries: [
        { path: "large.txt", bytes: 1024 ** 2 + 1 },
        { path: "movie.bin", bytes: 300_000 },
      ],
      unread: ["large.txt"],
    });
  });
});

test("a take that is given up leaves nothing", async () => {
  const signal = AbortSignal.timeout(200);
  const silent = async function* () {
    yield Buffer.from("# v2 git bundle\n");
    await new Promise(() => {});
  };
  await expect(site.take(silent(), { signal })).rejects.toMatchObject({ code: "aborted" });
  expect(await readdir(join(site.directory, "build/quarantine"))).toEqual([]);
});

test("what a caller gives wrong is told before anything is read", async () => {
  const unread = async function* (): AsyncGenerator<Buffer> {
    yield await Promise.reject(new Error("it was read"));
  };
  await expect(site.take(unread(), { base: "main" })).rejects.toMatchObject({ code: "invalid_request" });
  await expect(site.take(unread(), { base: "1".repeat(40) })).rejects.toMatchObject({ code: "commit_not_found" });
  await expect(site.take(unread(), { ref: "refs/heads/../x" })).rejects.toMatchObject({ code: "invalid_request" });
  await expect(site.take(unread(), { id: "cnd_../../x" as TakeOptions["id"] })).rejects.toMatchObject({
    code: "invalid_request",
  });
  await expect(site.take(unread())).rejects.toThrow("it was read");
});
