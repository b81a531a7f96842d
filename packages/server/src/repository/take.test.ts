import { createHash } from "node:crypto";
import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { deflateSync } from "node:zlib";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { CandidateRefused } from "./refusal.ts";
import type { TakeOptions } from "./repository.ts";
import type { TakeLimits } from "./take.ts";
import { branch, type Maker, newCandidate, openSite, type Site } from "./testing.ts";

let site: Site;
let sandbox: Maker;

beforeAll(async () => {
  site = await openSite({
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
    "src/old.test.ts": 'test("old", () => expect(1).toBe(1));\n',
    "config.txt": "key=none\n",
  });
  sandbox = site.sandbox;
});
afterAll(() => site[Symbol.asyncDispose]());

type Limits = Partial<TakeLimits>;

async function take(bundle: AsyncIterable<Uint8Array>, options: Partial<TakeOptions> = {}) {
  return await site.repository.take(bundle, { id: newCandidate(), ref: branch, base: site.main, ...options });
}

async function offer(tip: string, limits: Limits = {}) {
  return await take(sandbox.bundle(tip, { needs: [site.main] }), { limits });
}

/** The findings, after a look that nothing of it has stayed. */
async function refusalOf(work: Promise<unknown>): Promise<CandidateRefused["findings"]> {
  const error = await work.then(
    () => undefined,
    (reason: unknown) => reason,
  );
  expect(error).toBeInstanceOf(CandidateRefused);
  expect(error).toMatchObject({ code: "candidate_refused", retry: "never" });
  expect(await readdir(join(site.directory, "build/quarantine"))).toEqual([]);
  return (error as CandidateRefused).findings;
}

async function packs(): Promise<string[]> {
  return await readdir(join(site.directory, "build/repository.git/objects/pack"));
}

describe("a good bundle", () => {
  test("becomes a candidate, with what it changes", async () => {
    const id = newCandidate();
    const commit = await sandbox.commit({ files: { "src/new.ts": "1\n", "README.md": null }, parents: [site.main] });
    const taken = await take(sandbox.bundle(commit, { needs: [site.main] }), { id });
    expect(taken).toMatchObject({
      commit,
      commits: 1,
      empty: false,
      contains: [],
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
    const first = await take(again(), { id });
    expect(await take(again(), { id })).toEqual(first);
    const other = await sandbox.commit({ files: { twice: "2\n" }, parents: [site.main] });
    await expect(take(sandbox.bundle(other, { needs: [site.main] }), { id })).rejects.toMatchObject({
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
    expect(await take(bytes())).toMatchObject({ commit });
  });

  test("tells on which other candidates it is built", async () => {
    const id = newCandidate();
    const one = await sandbox.commit({ files: { one: "1\n" }, parents: [site.main] });
    await take(sandbox.bundle(one, { needs: [site.main] }), { id });
    const two = await sandbox.commit({ files: { two: "1\n" }, parents: [one] });
    expect(await offer(two)).toMatchObject({ contains: [id], commits: 2 });
  });
});

describe("what is told of a candidate", () => {
  test("that it changes nothing", async () => {
    const commit = await sandbox.commit({ parents: [site.main] });
    expect(await offer(commit)).toMatchObject({ empty: true, changes: [] });
  });

  test("tests that were weakened or deleted", async () => {
    const weaker =
      'test("adds", () => {\n  expect(sum(1, 2)).toBeDefined();\n});\ntest.skip("takes zero", () => {});\n';
    const commit = await sandbox.commit({
      files: { "src/sum.test.ts": weaker, "src/old.test.ts": null },
      parents: [site.main],
    });
    const same = { testsAdded: 0, assertionsAdded: 0, skipsAdded: 0 };
    expect((await offer(commit)).tests).toEqual([
      { ...same, path: "src/old.test.ts", change: "deleted", assertionsRemoved: 1, testsRemoved: 1 },
      {
        ...{ path: "src/sum.test.ts", change: "changed", assertionsRemoved: 3, assertionsAdded: 1 },
        ...{ testsRemoved: 1, testsAdded: 1, skipsAdded: 1 },
      },
    ]);
  });

  test("no tests that are new or only moved as they are", async () => {
    const moved = await sandbox.git(["show", `${site.main}:src/sum.test.ts`]);
    const files = { "src/sum.test.ts": null, "src/add.test.ts": moved, "src/new.test.ts": "test('x', () => {})\n" };
    const { tests } = await offer(await sandbox.commit({ files, parents: [site.main] }));
    expect(tests).toMatchObject([
      { path: "src/sum.test.ts", change: "renamed", assertionsRemoved: 0, testsRemoved: 0 },
    ]);
    expect(tests).toHaveLength(1);
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
    const { secrets } = await offer(await sandbox.commit({ files, parents: [site.main] }));
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
    expect(await offer(await sandbox.commit({ files, parents: [site.main] }))).toMatchObject({
      binaries: [
        { path: "large.txt", bytes: 1024 ** 2 + 1 },
        { path: "movie.bin", bytes: 300_000 },
      ],
      unread: ["large.txt"],
    });
  });
});

describe("a tree is refused that has", () => {
  const inRoot = async (mode: string, name: string, content = "x") =>
    await sandbox.tree([[mode, name, await sandbox.object("blob", content)]]);
  const nested = async (name: string) =>
    await sandbox.tree([["40000", name, await inRoot("100644", "config", "[core]\n")]]);
  const commitOf = async (tree: string) => await sandbox.commit({ tree, parents: [site.main] });

  test.each([
    ["../evil"],
    [".."],
    ["."],
    [".git"],
    [".GIT"],
    ["git~1"],
    [".g\u200cit"],
    [".git "],
    ["/etc"],
    ["a/b"],
    [""],
  ])("a file named %j", async (name) => {
    const [finding] = await refusalOf(offer(await commitOf(await inRoot("100644", name))));
    expect(finding?.message).toMatch(/^git refuses the bundle: git index-pack/);
  });

  test.each([[".git"], [".GiT"], ["GIT~1"], [".git."]])("a directory named %j", async (name) => {
    await refusalOf(offer(await commitOf(await nested(name))));
    const deep = await sandbox.tree([["40000", "src", await nested(name)]]);
    await refusalOf(offer(await commitOf(deep)));
  });

  test("such a name only in a commit before its last", async () => {
    const evil = await commitOf(await nested(".git"));
    const clean = await sandbox.commit({ tree: await inRoot("100644", "ok"), parents: [evil] });
    await refusalOf(offer(clean));
  });

  test.each([
    ["git~2", "is git's own"],
    [".git::$INDEX_ALLOCATION", "is git's own"],
    ["a\nb", "has control characters"],
    ["a\u001b[31m", "has control characters"],
    ["a\u202egpj.exe", "has control characters"],
    ["..\\evil", "leads out of its directory"],
  ])("a path such as %j, with the path named", async (name, message) => {
    const tree = await sandbox.tree([["40000", "src", await inRoot("100644", name)]]);
    const findings = await refusalOf(offer(await commitOf(tree)));
    if (!findings[0]?.message.startsWith("git refuses")) expect(findings).toEqual([{ path: `src/${name}`, message }]);
  });

  test("a name that is not UTF-8", async () => {
    const tree = await sandbox.tree([["100644", Buffer.from([0x61, 0xff]), await sandbox.object("blob", "x")]]);
    expect(await refusalOf(offer(await commitOf(tree)))).toEqual([{ path: "a\ufffd", message: "is not UTF-8" }]);
  });

  test.each([
    ["/etc/passwd", "is a symbolic link to an absolute path"],
    ["../../etc/passwd", "is a symbolic link out of the tree"],
    ["..", "is a symbolic link out of the tree"],
    ["x/.git/config", "is a symbolic link into git's own"],
    [`${"x/".repeat(2000)}x`, "is a symbolic link of more than 4000 bytes"],
  ])("a symbolic link to %.20s", async (target, message) => {
    expect(await refusalOf(offer(await commitOf(await inRoot("120000", "link", target))))).toEqual([
      { path: "link", message },
    ]);
  });

  test("a symbolic link that leaves only by way of another", async () => {
    const up = await sandbox.tree([["120000", "up", await sandbox.object("blob", "..")]]);
    const out = await sandbox.object("blob", "a/up/..");
    const tree = await sandbox.tree([
      ["40000", "a", up],
      ["120000", "out", out],
    ]);
    expect(await refusalOf(offer(await commitOf(tree)))).toEqual([
      { path: "out", message: "is a symbolic link out of the tree" },
    ]);
  });

  test("no symbolic link that leaves: one inside is taken, and a circle too", async () => {
    const link = async (target: string) => await sandbox.object("blob", target);
    const tree = await sandbox.tree([
      ["120000", "a", await link("./b")],
      ["120000", "b", await link("a")],
      ["40000", "dir", await sandbox.tree([["120000", "c", await link("../nowhere/file")]])],
    ]);
    expect((await offer(await commitOf(tree))).changes.length).toBeGreaterThan(0);
  });

  test("a submodule", async () => {
    const tree = await sandbox.tree([["160000", "vendor", site.main]]);
    expect(await refusalOf(offer(await commitOf(tree)))).toEqual([{ path: "vendor", message: "is a submodule" }]);
  });

  test("the same name twice, or a mode that is none", async () => {
    const blob = await sandbox.object("blob", "x");
    const twice = await sandbox.tree([
      ["100644", "a", blob],
      ["100644", "a", blob],
    ]);
    await refusalOf(offer(await commitOf(twice)));
    await refusalOf(offer(await commitOf(await sandbox.tree([["100666", "a", blob]]))));
    await refusalOf(offer(await commitOf(await sandbox.tree([["10644", "a", blob]]))));
  });

  test("too many directories in each other", async () => {
    let tree = await inRoot("100644", "leaf");
    for (let depth = 0; depth < 60; depth++) tree = await sandbox.tree([["40000", "d", tree]]);
    const [finding] = await refusalOf(offer(await commitOf(tree)));
    expect(finding).toEqual({ path: Array(51).fill("d").join("/"), message: "is deeper than 50 directories" });
  });

  test("a path that is too long", async () => {
    let tree = await inRoot("100644", "leaf");
    for (let depth = 0; depth < 6; depth++) tree = await sandbox.tree([["40000", "d".repeat(200), tree]]);
    expect((await refusalOf(offer(await commitOf(tree))))[0]?.message).toBe("is longer than 1000 bytes");
  });

  test("endlessly many files by few objects", async () => {
    let tree = await inRoot("100644", "leaf");
    for (let depth = 0; depth < 12; depth++) {
      const below = tree;
      tree = await sandbox.tree(Array.from({ length: 10 }, (_, index) => ["40000", `d${index}`, below] as const));
    }
    expect(await refusalOf(offer(await commitOf(tree)))).toEqual([
      { path: null, message: "the tree has more than 100000 files and directories" },
    ]);
  });

  test("100,001 files; 100,000 are taken", async () => {
    const blob = await sandbox.object("blob", "x");
    const some = (count: number) =>
      Array.from({ length: count }, (_, index) => ["100644", `f${String(index).padStart(6, "0")}`, blob] as const);
    const most = await commitOf(await sandbox.tree(some(100_000)));
    expect((await offer(most)).changes.length).toBeGreaterThanOrEqual(100_000);
    await refusalOf(offer(await commitOf(await sandbox.tree(some(100_001)))));
  });

  test("files that are too large, alone or together", async () => {
    const limits = { fileBytes: 1000, totalBytes: 3000 };
    const one = await commitOf(await inRoot("100644", "big", "x".repeat(1001)));
    expect(await refusalOf(offer(one, limits))).toEqual([{ path: "big", message: "has 1001 bytes, more than 1000" }]);
    const blob = await sandbox.object("blob", "x".repeat(900));
    const four = await sandbox.tree(["a", "b", "c", "d"].map((name) => ["100644", name, blob] as const));
    expect(await refusalOf(offer(await commitOf(four), limits))).toEqual([
      { path: null, message: "the tree has more than 3000 bytes" },
    ]);
  });
});

describe("a bundle is refused that", () => {
  const good = async (header = {}) => {
    const commit = await sandbox.commit({ files: { [`${Math.random()}`]: "1" }, parents: [site.main] });
    return Buffer.concat(await Array.fromAsync(sandbox.bundle(commit, { needs: [site.main], ...header })));
  };
  const bytes = async function* (...chunks: (Buffer | string)[]) {
    for (const chunk of chunks) yield Buffer.from(chunk);
  };

  test.each([
    ["is empty", ""],
    ["is something else", "PK\u0003\u0004 not a bundle"],
    ["is a page", "<html>\n\n</html>"],
    ["is of another version", "# v9 git bundle\n\nPACK"],
    ["has a line of its own", "# v2 git bundle\n--upload-pack=evil\n\nPACK"],
    ["is filtered", "# v3 git bundle\n@filter=blob:none\n\nPACK"],
    ["is of other objects", "# v3 git bundle\n@object-format=sha256\n\nPACK"],
    ["has no ref", "# v2 git bundle\n\nPACK"],
    ["never ends its header", `# v2 git bundle\n${"-".repeat(100_000)}`],
  ])("%s", async (_, text) => {
    expect((await refusalOf(take(bytes(text))))[0]?.message).toMatch(/no git bundle|not understood|0 refs/);
  });

  test("has two refs, or another one than was said", async () => {
    const two = bytes(await good({ refs: [branch, "refs/heads/main"] }));
    expect(await refusalOf(take(two))).toEqual([{ path: null, message: "the bundle has 2 refs instead of one" }]);
    const other = bytes(await good({ refs: ["refs/heads/main"] }));
    expect((await refusalOf(take(other)))[0]?.message).toBe(`the bundle is of "refs/heads/main" instead of ${branch}`);
  });

  test("is cut off anywhere", async () => {
    const whole = await good();
    const before = await packs();
    for (let part = 1; part < 20; part++) {
      await refusalOf(take(bytes(whole.subarray(0, Math.floor((whole.length * part) / 20)))));
    }
    await refusalOf(take(bytes(whole.subarray(0, -1))));
    expect(await packs()).toEqual(before);
  });

  test("has a byte changed", async () => {
    const whole = await good();
    const start = whole.indexOf("PACK");
    for (const at of [start + 5, start + 11, start + 14, whole.length - 1]) {
      const broken = Buffer.from(whole);
      broken[at] = (broken[at] ?? 0) ^ 0xff;
      await refusalOf(take(bytes(broken)));
    }
  });

  test("goes on and on: it is read to its limit and not further", async () => {
    const head = await good();
    let sent = 0;
    let stopped = false;
    const endless = async function* () {
      const start = head.indexOf("PACK");
      yield Buffer.concat([head.subarray(0, start), Buffer.from("PACK\0\0\0\u0002\0\x0f\xff\xff", "latin1")]);
      const blob = head.subarray(start + 12, -20);
      const many = Buffer.concat(Array(Math.ceil(65536 / blob.length)).fill(blob));
      try {
        for (; sent < 10 * 1024 ** 3; sent += many.length) yield many;
      } finally {
        stopped = true;
      }
    };
    const findings = await refusalOf(take(endless(), { limits: { bundleBytes: 8 * 1024 ** 2 } }));
    expect(findings[0]?.message).toBe("the bundle has more than 8388608 bytes");
    expect(sent).toBeLessThan(9 * 1024 ** 2);
    expect(stopped).toBe(true);
  });

  test("says it has four billion objects", async () => {
    const head = await good();
    const many = Buffer.from("PACK\0\0\0\u0002\xff\xff\xff\xff", "latin1");
    await refusalOf(
      take(bytes(head.subarray(0, head.indexOf("PACK")), many, head.subarray(head.indexOf("PACK") + 12))),
    );
  });

  test("asks for terabytes by a few bytes of delta", async () => {
    const base = await sandbox.object("blob", "x".repeat(100_000));
    const commit = await sandbox.commit({ files: { f: "bomb" }, parents: [site.main] });
    const whole = Buffer.concat(await Array.fromAsync(sandbox.bundle(commit, { needs: [site.main] })));
    const bomb = deltaOf(base, 100_000, 2 ** 40);
    const start = whole.indexOf("PACK");
    const header = Buffer.from(whole.subarray(start, start + 12));
    header.writeUInt32BE(header.readUInt32BE(8) + 1, 8);
    const pack = Buffer.concat([header, whole.subarray(start + 12, -20), bomb]);
    const trailer = createHash("sha1").update(pack).digest();
    await refusalOf(take(bytes(whole.subarray(0, start), pack, trailer)));
  });

  test.each([["in its header"], ["in its pack"]])("falls silent %s", async (where) => {
    const whole = await good();
    const silent = async function* () {
      yield whole.subarray(0, where === "in its header" ? 20 : whole.length - 30);
      await new Promise(() => {});
    };
    const findings = await refusalOf(take(silent(), { limits: { timeMs: 300 } }));
    expect(findings[0]?.message).toBe("the bundle took more than 300 ms");
  });

  test("unpacks to far more than it is", async () => {
    const commit = await sandbox.commit({ files: { zeros: Buffer.alloc(8 * 1024 ** 2) }, parents: [site.main] });
    const whole = Buffer.concat(await Array.fromAsync(sandbox.bundle(commit, { needs: [site.main] })));
    expect(whole.length).toBeLessThan(20_000);
    const findings = await refusalOf(take(bytes(whole), { limits: { fileBytes: 1024 ** 2 } }));
    expect(findings).toEqual([{ path: "zeros", message: "has 8388608 bytes, more than 1048576" }]);
  });

  test("does not descend from its base", async () => {
    const orphan = await sandbox.commit({ files: { orphan: "1" } });
    const findings = await refusalOf(take(sandbox.bundle(orphan, {})));
    expect(findings[0]?.message).toBe(`the commit does not descend from its base ${site.main}`);
  });

  test("needs what is not in main, be it there as another's candidate", async () => {
    const other = await sandbox.commit({ files: { other: "1" }, parents: [site.main] });
    await offer(other);
    const upon = await sandbox.commit({ files: { upon: "1" }, parents: [other] });
    const findings = await refusalOf(take(sandbox.bundle(upon, { needs: [other] })));
    expect(findings[0]?.message).toBe("the bundle needs commits that are not in main's history");
    const unknown = await sandbox.commit({ files: { unknown: "1" }, parents: [site.main] });
    await refusalOf(take(sandbox.bundle(unknown, { needs: ["1".repeat(40)] })));
  });

  test("leaves out an object", async () => {
    const hidden = await sandbox.object("blob", "hidden");
    const tree = await sandbox.tree([["100644", "hidden", hidden]]);
    await Array.fromAsync(sandbox.bundle(tree, {}));
    const commit = await sandbox.commit({ tree, parents: [site.main] });
    await refusalOf(offer(commit));
  });

  test("has a ref to a tag or a tree", async () => {
    const commit = await sandbox.commit({ files: { tagged: "1" }, parents: [site.main] });
    const tag = await sandbox.object("tag", `object ${commit}\ntype commit\ntag v1\ntagger M <m@x> 1 +0000\n\nv1\n`);
    expect((await refusalOf(offer(tag)))[0]?.message).toBe("the bundle's ref is no commit");
    const tree = await sandbox.tree([["100644", "f", await sandbox.object("blob", "x")]]);
    await refusalOf(offer(tree));
  });

  test("has too many commits", async () => {
    let commit = site.main;
    for (let count = 0; count < 4; count++)
      commit = await sandbox.commit({ files: { f: `${count}` }, parents: [commit] });
    expect((await refusalOf(offer(commit, { commits: 3 })))[0]?.message).toBe("there are more than 3 commits");
  });
});

/** An entry of a pack that makes, of an object in it, one of so many bytes. */
function deltaOf(base: string, baseBytes: number, bytes: number): Buffer {
  const size = (value: number) => {
    const parts: number[] = [];
    for (let rest = value; ; rest = Math.floor(rest / 128)) {
      parts.push((rest % 128) + (rest >= 128 ? 128 : 0));
      if (rest < 128) return Buffer.from(parts);
    }
  };
  const copyAll = Buffer.from([0b1111_0000, 0xa0, 0x86, 0x01]);
  const delta = Buffer.concat([size(baseBytes), size(bytes), ...Array<Buffer>(1000).fill(copyAll)]);
  const head = Buffer.from([0b1111_0000 + (delta.length % 16), ...size(Math.floor(delta.length / 16))]);
  return Buffer.concat([head, Buffer.from(base, "hex"), deflateSync(delta)]);
}

test("a take that is given up leaves nothing", async () => {
  const signal = AbortSignal.timeout(200);
  const silent = async function* () {
    yield Buffer.from("# v2 git bundle\n");
    await new Promise(() => {});
  };
  await expect(take(silent(), { signal })).rejects.toMatchObject({ code: "aborted" });
  expect(await readdir(join(site.directory, "build/quarantine"))).toEqual([]);
});

test("what a caller gives wrong is told before anything is read", async () => {
  const unread = async function* (): AsyncGenerator<Buffer> {
    yield await Promise.reject(new Error("it was read"));
  };
  await expect(take(unread(), { base: "main" })).rejects.toMatchObject({ code: "invalid_request" });
  await expect(take(unread(), { base: "1".repeat(40) })).rejects.toMatchObject({ code: "commit_not_found" });
  await expect(take(unread(), { ref: "refs/heads/../x" })).rejects.toMatchObject({ code: "invalid_request" });
  await expect(take(unread(), { id: "cnd_../../x" as TakeOptions["id"] })).rejects.toMatchObject({
    code: "invalid_request",
  });
  await expect(take(unread())).rejects.toThrow("it was read");
});
