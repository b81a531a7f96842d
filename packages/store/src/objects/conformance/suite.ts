import { SlipwayError } from "@slipway/contract";
import fc from "fast-check";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { below, collect, listAll, type ObjectContent, type ObjectStorage } from "../storage.ts";

const odd = [
  "a b.txt",
  "line\nbreak",
  "tab\t",
  "ünïcödé-文",
  "%41+?#&;=",
  "quote\"'\\",
  "😀",
  "\u0001control",
  "-dash",
  "~",
];

/** What every object storage has to pass. Its test calls this once, with a storage that holds nothing. */
export function describeObjectStorage(name: string, open: () => Promise<ObjectStorage>): void {
  describe(`${name} conforms to the port`, () => {
    let whole: ObjectStorage;
    let storage: ObjectStorage;
    let tests = 0;
    beforeAll(async () => {
      whole = await open();
    });
    afterAll(async () => await whole[Symbol.asyncDispose]());
    const fresh = () => {
      storage = below(whole, `test-${++tests}`);
      return storage;
    };

    describe("an object", () => {
      test("is read as it was written, whatever its bytes", async () => {
        fresh();
        await fc.assert(
          fc.asyncProperty(fc.uint8Array({ maxLength: 100_000, size: "max" }), async (data) => {
            expect(await storage.put("any", data)).toEqual({ size: data.length });
            expect(Buffer.compare(await bytesOf(storage, "any"), data)).toBe(0);
          }),
          { numRuns: 10 },
        );
        expect(await storage.head("any")).toMatchObject({ key: "any", size: (await bytesOf(storage, "any")).length });
      });

      test("of many parts streams in and out, and is read from any byte on", async () => {
        fresh();
        const part = Buffer.from(Array.from({ length: 1_000_003 }, (_, index) => (index * 31) % 251));
        async function* content() {
          for (let count = 0; count < 20; count++) yield part;
        }
        const expected = Buffer.concat(Array.from({ length: 20 }, () => part));
        expect(await storage.put("large", content())).toEqual({ size: expected.length });
        expect(Buffer.compare(await bytesOf(storage, "large"), expected)).toBe(0);
        for (const [offset, length] of [
          [0, 1],
          [8 * 1024 * 1024 - 1, 2],
          [expected.length - 3, 10],
          [5, 0],
        ] as const) {
          const range = await bytesOf(storage, "large", { offset, length });
          expect(Buffer.compare(range, expected.subarray(offset, offset + length))).toBe(0);
        }
        expect(await bytesOf(storage, "large", { offset: expected.length + 5 })).toHaveLength(0);
        expect(await bytesOf(storage, "large", { offset: expected.length - 2 })).toHaveLength(2);
      });

      test("may be empty, from bytes and from a stream", async () => {
        fresh();
        await storage.put("a", "");
        await storage.put("b", (async function* () {})());
        expect(await bytesOf(storage, "a")).toHaveLength(0);
        expect(await bytesOf(storage, "b")).toHaveLength(0);
      });

      test("has any name that a file can have", async () => {
        fresh();
        const keys = odd.flatMap((name) => [`plain/${name}`, `${name}!/below/x`]);
        for (const key of keys) await storage.put(key, key);
        for (const key of keys) expect((await bytesOf(storage, key)).toString()).toBe(key);
        expect((await keysOf(storage, "")).sort()).toEqual(keys.sort());
        await storage.copy(keys[4] ?? "", `copies/${odd[4]}`);
        expect((await bytesOf(storage, `copies/${odd[4]}`)).toString()).toBe(keys[4]);
      });

      test("is replaced as a whole", async () => {
        fresh();
        await storage.put("it", "old".repeat(1000));
        await storage.put("it", "new");
        expect((await bytesOf(storage, "it")).toString()).toBe("new");
      });

      test("stays as it was when its new content breaks off", async () => {
        fresh();
        await storage.put("it", "old");
        const broken = (bytes: number) =>
          (async function* () {
            yield Buffer.alloc(bytes);
            throw new Error("the source broke off");
          })();
        await expect(storage.put("it", broken(10))).rejects.toThrow("the source broke off");
        await expect(storage.put("it", broken(20_000_000))).rejects.toThrow("the source broke off");
        expect((await bytesOf(storage, "it")).toString()).toBe("old");
        expect(await keysOf(storage, "")).toEqual(["it"]);
      });

      test("that is missing fails every read with one code", async () => {
        fresh();
        await storage.put("there/inner", "x");
        for (const key of ["missing", "there", "there/inner/deeper"]) {
          await expectCode(bytesOf(storage, key), "object_not_found");
          await expectCode(storage.head(key), "object_not_found");
          await expectCode(storage.copy(key, "elsewhere"), "object_not_found");
        }
      });

      test("is copied with its content, and each copy lives by itself", async () => {
        fresh();
        await storage.put("from", "one");
        await storage.copy("from", "far/away/to");
        await storage.put("from", "two");
        expect((await bytesOf(storage, "far/away/to")).toString()).toBe("one");
        await storage.delete("from");
        expect((await bytesOf(storage, "far/away/to")).toString()).toBe("one");
      });

      test("is deleted once and for all", async () => {
        fresh();
        await storage.put("a/b/c", "x");
        await storage.put("a/d", "x");
        await storage.delete("a/b/c");
        await storage.delete("a/b/c");
        await expectCode(bytesOf(storage, "a/b/c"), "object_not_found");
        expect(await keysOf(storage, "")).toEqual(["a/d"]);
        await storage.put("a/b", "now a file");
      });
    });

    describe("a claim", () => {
      test("has one winner among many, and keeps the winner's content", async () => {
        fresh();
        for (let round = 0; round < 10; round++) {
          const claims = Array.from({ length: 8 }, (_, index) => storage.create(`claim-${round}`, `writer ${index}`));
          const outcomes = await Promise.allSettled(claims);
          const winners = outcomes.flatMap(({ status }, index) => (status === "fulfilled" ? [index] : []));
          expect(winners).toHaveLength(1);
          expect((await bytesOf(storage, `claim-${round}`)).toString()).toBe(`writer ${winners[0]}`);
          for (const outcome of outcomes) {
            if (outcome.status === "rejected") expect(outcome.reason).toMatchObject({ code: "object_exists" });
          }
        }
      });

      test("may be repeated by its winner", async () => {
        fresh();
        await storage.create("claim", "mine");
        await storage.create("claim", "mine");
        await expectCode(storage.create("claim", "other"), "object_exists");
        await expectCode(storage.create("claim", "mine, and more"), "object_exists");
      });
    });

    describe("a list", () => {
      test("is in the order of bytes, complete, page by page", async () => {
        fresh();
        const keys = ["a", "a-b/1", "a.b/1", "b/1", "b/1.5", "b/10/x", "b/2", "c/é", "c/文", "c/😀", "d"];
        for (const key of keys) await storage.put(key, "x");
        const sorted = keys.toSorted((a, b) => Buffer.compare(Buffer.from(a), Buffer.from(b)));
        expect(await keysOf(storage, "")).toEqual(sorted);
        const paged: string[] = [];
        let after: string | undefined;
        for (let pages = 0; pages < 20; pages++) {
          const page = await storage.list("", { limit: 2, ...(after !== undefined && { after }) });
          expect(page.objects.length).toBeLessThanOrEqual(2);
          paged.push(...page.objects.map(({ key }) => key));
          if (page.next === null) break;
          after = page.next;
        }
        expect(paged).toEqual(sorted);
        expect(await keysOf(storage, "b/1")).toEqual(["b/1", "b/1.5", "b/10/x"]);
        expect(await keysOf(storage, "none/")).toEqual([]);
      });

      test("goes past a thousand keys", async () => {
        fresh();
        const keys = Array.from({ length: 1100 }, (_, index) => `many/${String(index).padStart(4, "0")}`);
        for (let at = 0; at < keys.length; at += 50) {
          await Promise.all(keys.slice(at, at + 50).map((key) => storage.put(key, "")));
        }
        expect(await keysOf(storage, "many/")).toEqual(keys);
      });
    });

    test.each([
      ["an absolute path", "/a"],
      ["a step up", "a/../b"],
      ["only a step up", ".."],
      ["a dot", "a/./b"],
      ["an empty part", "a//b"],
      ["a slash at the end", "a/"],
      ["nothing", ""],
      ["a NUL", "a\0b"],
      ["half a surrogate pair", "a\ud800b"],
      ["too many bytes", "ä".repeat(513)],
    ])("%s is no key", async (_name, key) => {
      const calls = [
        () => whole.put(key, "x"),
        () => whole.create(key, "x"),
        () => whole.head(key),
        () => bytesOf(whole, key),
        () => whole.delete(key),
        () => whole.copy("x", key),
      ];
      await whole.put("x", "x");
      for (const call of calls) await expectCode((async () => call())(), "invalid_object_key");
    });

    test("a call ends with the reason of its signal", async () => {
      fresh();
      const reason = new Error("enough");
      const signal = AbortSignal.abort(reason);
      const content: ObjectContent = (async function* () {
        yield Buffer.alloc(10);
      })();
      await expect(storage.put("x", content, { signal })).rejects.toBe(reason);
      await storage.put("x", "x");
      await expect(bytesOf(storage, "x", { signal })).rejects.toBe(reason);
    });
  });
}

export async function bytesOf(
  storage: ObjectStorage,
  key: string,
  options?: Parameters<ObjectStorage["get"]>[1],
): Promise<Buffer> {
  return await collect(storage.get(key, options));
}

export async function keysOf(storage: ObjectStorage, prefix: string): Promise<string[]> {
  const keys: string[] = [];
  for await (const { key } of listAll(storage, prefix)) keys.push(key);
  return keys;
}

export async function expectCode(work: Promise<unknown>, code: string): Promise<void> {
  const error = await work.then(
    () => undefined,
    (failure: unknown) => failure,
  );
  expect(error).toBeInstanceOf(SlipwayError);
  expect((error as SlipwayError).code).toBe(code);
}
