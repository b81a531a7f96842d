import { mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { SlipwayError } from "@slipway/contract";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { readText } from "../run.ts";
import { type Conformance, drain, eventually, expectCode, runProgram, startReady } from "./context.ts";

/** Paths inside a sandbox never reach the host, whatever the sandbox makes of them. */
export function describeHeld(c: Conformance): void {
  describe("a symbolic link out of the sandbox", () => {
    let hostDirectory = "";
    let hostFile = "";

    beforeAll(async () => {
      hostDirectory = await mkdtemp(join(tmpdir(), "slipway-canary-"));
      hostFile = join(hostDirectory, "canary");
      await writeFile(hostFile, "the host's");
    });
    afterAll(async () => await rm(hostDirectory, { recursive: true }));

    test("to /etc/shadow shows at most the sandbox's own", async () => {
      const { files } = c.shared;
      const link = `${c.place()}/link`;
      await files.mkdir(link.slice(0, -5));
      await runProgram(c.shared, "link", ["/etc/shadow", link]);
      expect(await files.stat(link)).toMatchObject({ type: "symlink", symlinkTarget: "/etc/shadow" });
      const inside = await runProgram(c.shared, "readFile", ["/etc/shadow"]);
      const read = await readText(files, link).catch((error: unknown) => (error as SlipwayError).code);
      expect(["file_not_found", "file_forbidden", inside.stdout]).toContain(read);
    });

    test("is the link itself to stat, and what it leads to inside when told to follow", async () => {
      const { files } = c.shared;
      const place = c.place();
      await files.write(`${place}/target`, "inside");
      await runProgram(c.shared, "link", ["target", `${place}/link`]);
      expect(await files.stat(`${place}/link`)).toMatchObject({ type: "symlink", symlinkTarget: "target" });
      expect(await files.stat(`${place}/link`, { followSymlink: true })).toMatchObject({ type: "file", size: 6 });
      expect(await readText(files, `${place}/link`)).toBe("inside");
    });

    test("never leads a read, a stat, a list, a search or a download to the host", async () => {
      const { files } = c.shared;
      const place = c.place();
      await files.mkdir(place);
      await runProgram(c.shared, "link", [hostFile, `${place}/file`]);
      await runProgram(c.shared, "link", [hostDirectory, `${place}/directory`]);
      for (const path of [`${place}/file`, `${place}/directory/canary`]) {
        await expectCode(drain(files.read(path)), "file_not_found");
        await expectCode(files.stat(path, { followSymlink: true }), "file_not_found");
      }
      await expectCode(drain(files.list(`${place}/directory`)), "file_not_found", "not_a_directory");
      expect(await drain(files.list(place, { glob: "**" }))).toHaveLength(2);
      expect(await drain(files.search("host", { path: place }))).toEqual([]);
      const types = (await drain(files.download(place))).map(({ type }) => type);
      expect(types.filter((type) => type === "file")).toEqual([]);
    });

    test("is itself what a write replaces, a move moves and a remove removes", async () => {
      const { files } = c.shared;
      const place = c.place();
      await files.mkdir(place);
      for (const name of ["written", "moved", "removed"])
        await runProgram(c.shared, "link", [hostFile, `${place}/${name}`]);
      await files.write(`${place}/written`, "the sandbox's");
      expect(await files.stat(`${place}/written`)).toMatchObject({ type: "file", size: 13 });
      await files.move(`${place}/moved`, `${place}/to`);
      expect(await files.stat(`${place}/to`)).toMatchObject({ type: "symlink" });
      await files.remove(`${place}/removed`);
      await runProgram(c.shared, "link", [hostDirectory, `${place}/tree`]);
      await files.remove(`${place}/tree`, { recursive: true });
      expect(await readFile(hostFile, "utf8")).toBe("the host's");
    });

    test("that replaces a directory during writes catches none of them", async () => {
      const { files } = c.shared;
      const place = c.place();
      await files.mkdir(`${place}/d`);
      const { exec } = await startReady(c.shared, "flipDirectory", [`${place}/d`, hostDirectory]);
      const deadline = Date.now() + 400;
      for (let i = 0; Date.now() < deadline; i++) {
        await files.write(`${place}/d/f${i}`, "x").catch((error: unknown) => {
          if (!(error instanceof SlipwayError)) throw error;
          expect(error.code).not.toBe("internal");
        });
        await sleep(1);
      }
      await exec.kill({ graceMs: 0 });
      expect(await readdir(hostDirectory)).toEqual(["canary"]);
    });
  });

  test("a file that is renamed and replaced during writes is always one whole version", async () => {
    const { files } = c.shared;
    const place = c.place();
    const version = (letter: string) => letter.repeat(512 * 1024);
    let ended = false;
    const tolerate = async (call: Promise<unknown>) =>
      await call.catch((e: unknown) => expectCode(Promise.reject(e), "file_not_found"));
    await files.write(`${place}/f`, version("a"));
    const renaming = (async () => {
      while (!ended) {
        await tolerate(files.move(`${place}/f`, `${place}/g`, { overwrite: true }));
        await sleep(1);
      }
    })();
    const writing = (async () => {
      for (const letter of "bcdefghijk") await files.write(`${place}/f`, version(letter));
      ended = true;
    })();
    const reading = (async () => {
      while (!ended) {
        const text = await readText(files, `${place}/f`).catch(() => version("a"));
        expect(text === version(text.charAt(0))).toBe(true);
        await sleep(1);
      }
    })();
    await Promise.all([renaming, writing, reading]);
  });

  test("only regular files have content: a pipe or a device is refused, not waited for", async () => {
    const place = c.place();
    await c.shared.files.mkdir(place);
    await runProgram(c.shared, "fifo", [`${place}/pipe`]);
    expect(await c.shared.files.stat(`${place}/pipe`)).toMatchObject({ type: "other" });
    await expectCode(drain(c.shared.files.read(`${place}/pipe`)), "not_a_file");
    await expectCode(drain(c.shared.files.read("/dev/zero")), "not_a_file");
  });

  if (c.capabilities.watch) describeWatch(c);
  else {
    test("a watch is refused", async () => {
      await expectCode(drain(c.shared.files.watch("/workspace")), "capability_missing");
    });
  }
}

function describeWatch(c: Conformance): void {
  describe("watch", () => {
    test("tells what is created, modified and removed below a directory", async () => {
      const { files } = c.shared;
      const place = c.place();
      await files.mkdir(`${place}/sub`);
      await using seen = await watching(c, place, true);
      await files.write(`${place}/sub/new`, "1");
      await eventually(() =>
        expect(seen.changes).toContainEqual(expect.objectContaining({ path: `${place}/sub/new` })),
      );
      await files.remove(`${place}/sub/new`);
      await eventually(() => expect(seen.changes).toContainEqual({ type: "removed", path: `${place}/sub/new` }));
    });

    test("of one file goes on when the file is replaced", async () => {
      const { files } = c.shared;
      const path = `${c.place()}/file`;
      await files.write(path, "0");
      await using seen = await watching(c, path, false);
      for (const content of ["1", "2", "3"]) {
        const before = seen.changes.length;
        await files.write(path, content);
        await eventually(() => expect(seen.changes.slice(before)).toContainEqual(expect.objectContaining({ path })));
      }
    });
  });
}

/** Starts to watch and touches a file until the first change shows: from then on none is missed. */
async function watching(c: Conformance, path: string, recursive: boolean) {
  const { files } = c.shared;
  const controller = new AbortController();
  const changes: { type: string; path: string }[] = [];
  const reading = (async () => {
    for await (const change of files.watch(path, { recursive, signal: controller.signal })) changes.push(change);
  })().catch((error: unknown) => expectCode(Promise.reject(error), "aborted"));
  const touched = recursive ? `${path}/touched` : path;
  await eventually(async () => {
    await files.write(touched, "x");
    await sleep(20);
    expect(changes.length).toBeGreaterThan(0);
  });
  return {
    changes,
    async [Symbol.asyncDispose]() {
      controller.abort();
      await reading;
    },
  };
}
