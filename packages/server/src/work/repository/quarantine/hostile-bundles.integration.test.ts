import { createHash } from "node:crypto";
import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { deflateSync } from "node:zlib";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { openWorld, type WorldWith } from "../../../testing/world.ts";
import { branch, type Maker } from "../testing.ts";

let site: WorldWith<"repository">;
let sandbox: Maker;

beforeAll(async () => {
  site = await openWorld({ repository: "small" });
  sandbox = site.sandbox;
});
afterAll(() => site[Symbol.asyncDispose]());

async function packs(): Promise<string[]> {
  return await readdir(join(site.directory, "build/repository.git/objects/pack"));
}

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
    expect((await site.refusalOf(site.take(bytes(text))))[0]?.message).toMatch(/not a git bundle|unknown line|0 refs/);
  });

  test("has two refs, or another one than was said", async () => {
    const two = bytes(await good({ refs: [branch, "refs/heads/main"] }));
    expect(await site.refusalOf(site.take(two))).toEqual([
      { path: null, message: "the bundle has 2 refs instead of one" },
    ]);
    const other = bytes(await good({ refs: ["refs/heads/main"] }));
    expect((await site.refusalOf(site.take(other)))[0]?.message).toBe(
      `the bundle has the ref "refs/heads/main" instead of ${branch}`,
    );
  });

  test("is cut off anywhere", async () => {
    const whole = await good();
    const before = await packs();
    for (let part = 1; part < 20; part++) {
      await site.refusalOf(site.take(bytes(whole.subarray(0, Math.floor((whole.length * part) / 20)))));
    }
    await site.refusalOf(site.take(bytes(whole.subarray(0, -1))));
    expect(await packs()).toEqual(before);
  });

  test("has a byte changed", async () => {
    const whole = await good();
    const start = whole.indexOf("PACK");
    for (const at of [start + 5, start + 11, start + 14, whole.length - 1]) {
      const broken = Buffer.from(whole);
      broken[at] = (broken[at] ?? 0) ^ 0xff;
      await site.refusalOf(site.take(bytes(broken)));
    }
  });

  test("has 10 GB: it is read to its limit and not further, be all of it right so far", async () => {
    const head = await good();
    let sent = 0;
    let stopped = false;
    const large = async function* () {
      yield Buffer.concat([head.subarray(0, head.indexOf("PACK")), packOfBlob(10 * 1024 ** 3)]);
      // Not compressed.
      const block = Buffer.concat([Buffer.from([0, 0xff, 0xff, 0, 0]), Buffer.alloc(0xffff)]);
      try {
        for (; sent < 10 * 1024 ** 3; sent += block.length) yield block;
      } finally {
        stopped = true;
      }
    };
    const findings = await site.refusalOf(site.take(large()));
    expect(findings[0]?.message).toBe("the bundle has more than 268435456 bytes");
    expect(sent).toBeLessThanOrEqual(256 * 1024 ** 2);
    expect(stopped).toBe(true);
  });

  test("says it has four billion objects", async () => {
    const head = await good();
    const many = Buffer.from("PACK\0\0\0\u0002\xff\xff\xff\xff", "latin1");
    await site.refusalOf(
      site.take(bytes(head.subarray(0, head.indexOf("PACK")), many, head.subarray(head.indexOf("PACK") + 12))),
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
    await site.refusalOf(site.take(bytes(whole.subarray(0, start), pack, trailer)));
  });

  test.each([["in its header"], ["in its pack"]])("falls silent %s", async (where) => {
    const whole = await good();
    const silent = async function* () {
      yield whole.subarray(0, where === "in its header" ? 20 : whole.length - 30);
      await new Promise(() => {});
    };
    const findings = await site.refusalOf(site.take(silent(), { limits: { timeMs: 300 } }));
    expect(findings[0]?.message).toBe("the bundle took more than 300 ms");
  });

  test("unpacks to far more than it is", async () => {
    const commit = await sandbox.commit({ files: { zeros: Buffer.alloc(8 * 1024 ** 2) }, parents: [site.main] });
    const whole = Buffer.concat(await Array.fromAsync(sandbox.bundle(commit, { needs: [site.main] })));
    expect(whole.length).toBeLessThan(20_000);
    const findings = await site.refusalOf(site.take(bytes(whole), { limits: { fileBytes: 1024 ** 2 } }));
    expect(findings).toEqual([{ path: "zeros", message: "has 8388608 bytes, more than 1048576" }]);
  });

  test("does not descend from its base", async () => {
    const orphan = await sandbox.commit({ files: { orphan: "1" } });
    const findings = await site.refusalOf(site.take(sandbox.bundle(orphan, {})));
    expect(findings[0]?.message).toBe(`the commit does not descend from its base ${site.main}`);
  });

  test("needs what is not in main, be it there as another's candidate", async () => {
    const other = await sandbox.commit({ files: { other: "1" }, parents: [site.main] });
    await site.offer(other);
    const upon = await sandbox.commit({ files: { upon: "1" }, parents: [other] });
    const findings = await site.refusalOf(site.take(sandbox.bundle(upon, { needs: [other] })));
    expect(findings[0]?.message).toBe("the bundle needs commits that are not in main's history");
    const unknown = await sandbox.commit({ files: { unknown: "1" }, parents: [site.main] });
    await site.refusalOf(site.take(sandbox.bundle(unknown, { needs: ["1".repeat(40)] })));
  });

  test("leaves out an object", async () => {
    const hidden = await sandbox.object("blob", "hidden");
    const tree = await sandbox.tree([["100644", "hidden", hidden]]);
    await Array.fromAsync(sandbox.bundle(tree, {}));
    const commit = await sandbox.commit({ tree, parents: [site.main] });
    await site.refusalOf(site.offer(commit));
  });

  test("has a ref to a tag or a tree", async () => {
    const commit = await sandbox.commit({ files: { tagged: "1" }, parents: [site.main] });
    const tag = await sandbox.object("tag", `object ${commit}\ntype commit\ntag v1\ntagger M <m@x> 1 +0000\n\nv1\n`);
    expect((await site.refusalOf(site.offer(tag)))[0]?.message).toBe("the bundle's ref is not a commit");
    const tree = await sandbox.tree([["100644", "f", await sandbox.object("blob", "x")]]);
    await site.refusalOf(site.offer(tree));
  });

  test("has too many commits", async () => {
    let commit = site.main;
    for (let count = 0; count < 4; count++)
      commit = await sandbox.commit({ files: { f: `${count}` }, parents: [commit] });
    expect((await site.refusalOf(site.offer(commit, { commits: 3 })))[0]?.message).toBe(
      "the offer has more than 3 commits",
    );
  });
});

/** How a pack begins whose only object is a blob of so many bytes. */
function packOfBlob(bytes: number): Buffer {
  const blob = 0b1011_0000 + (bytes % 16);
  const beginOfStream = [0x78, 0x01];
  const head = Buffer.from([blob, ...sizeOf(Math.floor(bytes / 16)), ...beginOfStream]);
  return Buffer.concat([Buffer.from("PACK\0\0\0\u0002\0\0\0\u0001", "latin1"), head]);
}

/** Seven bits each, the lowest first. */
function sizeOf(value: number): Buffer {
  const parts: number[] = [];
  for (let rest = value; ; rest = Math.floor(rest / 128)) {
    parts.push((rest % 128) + (rest >= 128 ? 128 : 0));
    if (rest < 128) return Buffer.from(parts);
  }
}

/** An entry of a pack that makes, of an object in it, one of so many bytes. */
function deltaOf(base: string, baseBytes: number, bytes: number): Buffer {
  const copyAll = Buffer.from([0b1111_0000, 0xa0, 0x86, 0x01]);
  const delta = Buffer.concat([sizeOf(baseBytes), sizeOf(bytes), ...Array<Buffer>(1000).fill(copyAll)]);
  const head = Buffer.from([0b1111_0000 + (delta.length % 16), ...sizeOf(Math.floor(delta.length / 16))]);
  return Buffer.concat([head, Buffer.from(base, "hex"), deflateSync(delta)]);
}
