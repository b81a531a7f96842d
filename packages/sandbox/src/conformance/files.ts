import { createHash } from "node:crypto";
import { describe, expect, test } from "vitest";
import { readBytes, readText } from "../run.ts";
import { type Conformance, drain, expectCode, runProgram } from "./context.ts";

const mib = 1024 * 1024;

export function describeFiles(c: Conformance): void {
  describe("content", () => {
    test("what is written is read: text, nothing, and every byte value", async () => {
      const place = c.place();
      const binary = Uint8Array.from({ length: 1024 }, (_, i) => i % 256);
      for (const [name, content] of Object.entries({ text: "zwölf ☃\n", empty: "", binary })) {
        const bytes = Buffer.from(content as string);
        expect(await c.shared.files.write(`${place}/${name}`, content)).toEqual({ bytes: bytes.length });
        expect(Buffer.from(await readBytes(c.shared.files, `${place}/${name}`))).toEqual(bytes);
        expect(await c.shared.files.stat(`${place}/${name}`)).toMatchObject({ type: "file", size: bytes.length });
      }
    });

    test("a relative path starts at the workdir", async () => {
      const place = c.place();
      await c.shared.files.write(place.slice("/workspace/".length), "here");
      expect(await readText(c.shared.files, place)).toBe("here");
    });

    test("commands and callers see the same files", async () => {
      const place = c.place();
      await c.shared.files.write(place, "from outside");
      expect((await runProgram(c.shared, "readFile", [place])).stdout).toBe("from outside");
      await runProgram(c.shared, "append", [place, ", from inside"]);
      expect(await readText(c.shared.files, place)).toBe("from outside, from inside");
    });

    test("a file of 64 MiB arrives whole and comes back whole", async () => {
      const place = c.place();
      const sent = createHash("sha256");
      async function* content() {
        for (let i = 0; i < 64; i++) {
          const chunk = Buffer.alloc(mib, `${i} `);
          sent.update(chunk);
          yield chunk;
        }
      }
      expect(await c.shared.files.write(place, content())).toEqual({ bytes: 64 * mib });
      const hash = sent.digest("hex");
      expect((await runProgram(c.shared, "hashFile", [place])).stdout.trim()).toBe(hash);
      const received = createHash("sha256");
      for await (const chunk of c.shared.files.read(place)) received.update(chunk);
      expect(received.digest("hex")).toBe(hash);
      await c.shared.files.remove(place);
    });

    test("a part of a file is read by offset and length", async () => {
      const place = c.place();
      await c.shared.files.write(place, "0123456789");
      const part = async (options: { offset?: number; length?: number }) =>
        Buffer.concat(await drain(c.shared.files.read(place, options))).toString();
      expect(await part({ offset: 3 })).toBe("3456789");
      expect(await part({ offset: 3, length: 4 })).toBe("3456");
      expect(await part({ length: 2 })).toBe("01");
      expect(await part({ offset: 8, length: 100 })).toBe("89");
      expect(await part({ offset: 100 })).toBe("");
      expect(await part({ length: 0 })).toBe("");
    });

    test("a write makes the directories above, and sets the mode when told", async () => {
      const place = c.place();
      await c.shared.files.write(`${place}/a/b/c.sh`, "x", { mode: 0o755 });
      expect(await c.shared.files.stat(`${place}/a/b/c.sh`)).toMatchObject({ mode: 0o755 });
      expect(await c.shared.files.stat(`${place}/a/b`)).toMatchObject({ type: "directory" });
      await c.shared.files.write(`${place}/a/b/c.sh`, "y");
      expect(await c.shared.files.stat(`${place}/a/b/c.sh`)).toMatchObject({ mode: 0o755, size: 1 });
    });

    test("a content that fails half way leaves the old file", async () => {
      const place = c.place();
      await c.shared.files.write(place, "old");
      async function* broken() {
        yield Buffer.alloc(mib);
        throw new Error("the source broke");
      }
      await expect(c.shared.files.write(place, broken())).rejects.toThrow("the source broke");
      expect(await readText(c.shared.files, place)).toBe("old");
      expect(await names(c, place.slice(0, place.lastIndexOf("/")))).not.toContainEqual(
        expect.stringMatching(/\.(new|tmp)/),
      );
    });

    test("many files go in by one call", async () => {
      const place = c.place();
      const files = Object.fromEntries(
        Array.from({ length: 200 }, (_, i) => [`${place}/d${i % 7}/f${i}`, `content ${i}`]),
      );
      await c.shared.files.hydrate({ ...files, [`${place}/bytes`]: Uint8Array.of(0, 255) });
      expect(await readText(c.shared.files, `${place}/d3/f199`)).toBe("content 199");
      expect(await drain(c.shared.files.list(place, { glob: "**/f*" }))).toHaveLength(200);
    });
  });

  describe("entries", () => {
    test("stat tells type, size, mode and time", async () => {
      const place = c.place();
      const before = Date.now();
      await c.shared.files.write(place, "12345", { mode: 0o640 });
      const info = await c.shared.files.stat(place);
      expect(info).toMatchObject({ path: place, type: "file", size: 5, mode: 0o640, symlinkTarget: null });
      expect(Math.abs(info.modifiedAt - before)).toBeLessThan(60_000);
    });

    test("a directory lists its children, hidden ones too, and with a glob what matches below", async () => {
      const place = c.place();
      await c.shared.files.hydrate({
        [`${place}/a.ts`]: "",
        [`${place}/.hidden`]: "",
        [`${place}/sub/b.ts`]: "",
        [`${place}/sub/c.js`]: "",
        [`${place}/sub/line\nbreak`]: "",
      });
      expect(await names(c, place)).toEqual([`${place}/.hidden`, `${place}/a.ts`, `${place}/sub`]);
      expect(await names(c, place, "**/*.ts")).toEqual([`${place}/a.ts`, `${place}/sub/b.ts`]);
      expect(await names(c, place, "*.ts")).toEqual([`${place}/a.ts`]);
      expect(await names(c, place, "sub/?.*")).toEqual([`${place}/sub/b.ts`, `${place}/sub/c.js`]);
      expect(await names(c, place, "**")).toContain(`${place}/sub/line\nbreak`);
    });

    test("an empty directory lists nothing", async () => {
      const place = c.place();
      await c.shared.files.mkdir(place);
      expect(await names(c, place)).toEqual([]);
    });

    test("mkdir makes parents, sets the mode, and an existing directory is fine", async () => {
      const place = c.place();
      await c.shared.files.mkdir(`${place}/a/b`, { mode: 0o750 });
      await c.shared.files.mkdir(`${place}/a/b`);
      expect(await c.shared.files.stat(`${place}/a/b`)).toMatchObject({ type: "directory", mode: 0o750 });
    });

    test("a move takes files and whole directories, and replaces a file only when allowed", async () => {
      const { files } = c.shared;
      const place = c.place();
      await files.hydrate({ [`${place}/from/x`]: "x", [`${place}/one`]: "1", [`${place}/two`]: "2" });
      await files.move(`${place}/from`, `${place}/to`);
      expect(await readText(files, `${place}/to/x`)).toBe("x");
      await expectCode(files.stat(`${place}/from`), "file_not_found");
      await expectCode(files.move(`${place}/one`, `${place}/two`), "file_exists");
      expect(await readText(files, `${place}/two`)).toBe("2");
      await files.move(`${place}/one`, `${place}/two`, { overwrite: true });
      expect(await readText(files, `${place}/two`)).toBe("1");
    });

    test("a remove takes a file, an empty directory, or all below when told", async () => {
      const { files } = c.shared;
      const place = c.place();
      await files.write(`${place}/d/x`, "x");
      await expectCode(files.remove(`${place}/d`), "directory_not_empty");
      await files.remove(`${place}/d/x`);
      await files.remove(`${place}/d`);
      await files.write(`${place}/d/e/y`, "y");
      await files.remove(`${place}/d`, { recursive: true });
      expect(await names(c, place)).toEqual([]);
    });
  });

  describe("a mistaken path", () => {
    test("that does not exist", async () => {
      const { files } = c.shared;
      const path = `${c.place()}/none`;
      await expectCode(drain(files.read(path)), "file_not_found");
      await expectCode(files.stat(path), "file_not_found");
      await expectCode(drain(files.list(path)), "file_not_found");
      await expectCode(files.remove(path), "file_not_found");
      await expectCode(files.move(path, `${path}2`), "file_not_found");
      await expectCode(drain(files.download(path)), "file_not_found");
    });

    test("that is of the wrong type", async () => {
      const { files } = c.shared;
      const place = c.place();
      await files.write(`${place}/file`, "x");
      await expectCode(drain(files.read(place)), "not_a_file");
      await expectCode(files.write(place, "x"), "not_a_file");
      await expectCode(drain(files.list(`${place}/file`)), "not_a_directory");
      await expectCode(files.write(`${place}/file/below`, "x"), "not_a_directory");
      await expectCode(files.mkdir(`${place}/file`), "file_exists", "not_a_directory");
    });

    test("that leads outside, is empty or has a NUL", async () => {
      const { files } = c.shared;
      for (const path of ["../../outside", "/../outside", "/workspace/../../outside", "a/../../../x"]) {
        await expectCode(drain(files.read(path)), "path_outside");
        await expectCode(files.write(path, "x"), "path_outside");
        await expectCode(files.stat(path), "path_outside");
        await expectCode(drain(files.list(path)), "path_outside");
        await expectCode(files.mkdir(path), "path_outside");
        await expectCode(files.remove(path, { recursive: true }), "path_outside");
        await expectCode(files.move(path, "x"), "path_outside");
        await expectCode(files.move("x", path), "path_outside");
        await expectCode(files.hydrate({ [path]: "x" }), "path_outside");
        await expectCode(drain(files.search("x", { path })), "path_outside");
        await expectCode(files.upload(path, []), "path_outside");
        await expectCode(drain(files.download(path)), "path_outside");
      }
      for (const path of ["", "a\0b", `/${"x".repeat(5000)}`]) {
        await expectCode(drain(files.read(path)), "invalid_request");
        await expectCode(files.write(path, "x"), "invalid_request");
        await expectCode(files.stat(path), "invalid_request");
      }
    });

    test("that the sandbox's user may not write", async () => {
      await expectCode(c.shared.files.write("/usr/not-for-the-user", "x"), "file_forbidden");
      await expectCode(c.shared.files.mkdir("/usr/not-for-the-user"), "file_forbidden");
    });
  });
}

async function names(c: Conformance, path: string, glob?: string): Promise<string[]> {
  const entries = await drain(c.shared.files.list(path, glob === undefined ? {} : { glob }));
  return entries.map((entry) => entry.path).sort();
}
