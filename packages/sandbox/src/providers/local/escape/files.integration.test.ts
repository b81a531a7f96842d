import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { OwnedSandbox, TreeEntry } from "../../../provider.ts";
import { readBytes, readText, run } from "../../../run.ts";
import { type Attacker, attack, users } from "./attacker-fixture.ts";

let attacker: Attacker;
beforeAll(() => {
  attacker = attack();
});
afterAll(() => attacker[Symbol.asyncDispose]());

const signal = () => AbortSignal.timeout(100_000);

describe.each(users)("of %s inside,", (user) => {
  let sandbox: OwnedSandbox;
  let place: string;
  let number = 0;
  beforeAll(async () => {
    sandbox = await attacker.sandbox({ user });
  });
  const inNewPlace = async (script: string) => {
    place = `/workspace/place-${number++}`;
    const { exitCode, stderr } = await run(sandbox, `mkdir ${place} && cd ${place} && ${script}`);
    expect(exitCode, stderr).toBe(0);
  };
  const at = (name: string) => `${place}/${name}`;

  test("links through /proc lead no file operation out of the sandbox, nor into the agent", async () => {
    const links = {
      root: "/proc/1/root",
      self: "/proc/self/root",
      cwd: "/proc/self/cwd",
      three: "/proc/self/fd/3",
      four: "/proc/1/fd/4",
      six: "/proc/self/fd/6",
      exe: "/proc/self/exe",
    };
    await inNewPlace(
      Object.entries(links)
        .map(([name, to]) => `ln -s ${to} ${name}`)
        .join(" && "),
    );
    for (const name of Object.keys(links)) {
      const path = at(name);
      await expect(readBytes(sandbox.files, path, { signal: signal() }), name).rejects.toMatchObject({
        code: expect.stringMatching(/^(path_outside|file_forbidden|not_a_file|file_not_found)$/),
      });
      await expect(sandbox.files.write(`${path}/planted`, "x")).rejects.toThrow();
      await expect(sandbox.files.mkdir(`${path}/planted`)).rejects.toThrow();
      await expect(sandbox.files.move(at("none"), `${path}/planted`)).rejects.toThrow();
      await expect(sandbox.files.remove(`${path}/planted`)).rejects.toThrow();
      await expect(sandbox.files.upload(`${path}/planted`, [])).rejects.toThrow();
      await expect(Array.fromAsync(sandbox.files.download(path, { signal: signal() }))).rejects.toThrow();
    }
  });

  test("a write replaces a link or one name of a hard-linked file, and leaves what they lead to", async () => {
    await inNewPlace("echo old > target && ln target hard && ln -s target soft && ln -s /etc/passwd etc");
    for (const name of ["hard", "soft", "etc"]) await sandbox.files.write(at(name), "new");
    await sandbox.files.upload(place, [{ type: "file", path: "etc", mode: 0o600, content: "newer" }]);
    expect(await readText(sandbox.files, at("target"))).toBe("old\n");
    expect(await readText(sandbox.files, "/etc/passwd")).toMatch(/^root:/);
  });

  test("pipes, sockets and devices hold no file operation up", async () => {
    await inNewPlace(
      "mkfifo pipe && ln -s pipe link && ln -s /dev/zero zero && ln -s /dev/tty tty && python3 -c \"import socket; socket.socket(socket.AF_UNIX).bind('socket')\"",
    );
    for (const name of ["pipe", "link", "zero", "tty", "socket"]) {
      await expect(readBytes(sandbox.files, at(name), { signal: signal() }), name).rejects.toMatchObject({
        code: "not_a_file",
      });
    }
    await expect(sandbox.files.write(at("pipe"), "x", { signal: signal() })).rejects.toMatchObject({
      code: "not_a_file",
    });
    await expect(sandbox.exec({ argv: [at("pipe")] }, { signal: signal() })).rejects.toMatchObject({
      code: "exec_not_started",
    });
    await expect(sandbox.exec({ argv: ["true"], cwd: at("pipe") }, { signal: signal() })).rejects.toMatchObject({
      code: "exec_not_started",
    });
    await expect(Array.fromAsync(sandbox.files.search("x", { path: place, signal: signal() }))).resolves.toEqual([]);
    const entries = await Array.fromAsync(sandbox.files.download(place, { signal: signal() }));
    expect(entries.map(({ path, type }) => `${type} ${path}`).sort()).toEqual([
      "symlink link",
      "symlink tty",
      "symlink zero",
    ]);
  });

  test("a directory that is swapped for a link in a loop catches no write, move, removal, upload or download", async () => {
    await inNewPlace("mkdir trap && echo kept > trap/kept");
    const { exec } = await attacker.start(sandbox, "swapper", [at("swapped"), at("trap")]);
    const ignore = () => undefined;
    const entries = (round: number): TreeEntry[] => [
      { type: "directory", path: "swapped", mode: 0o755 },
      { type: "file", path: `swapped/upload-${round}`, mode: 0o644, content: "x" },
    ];
    const downloaded: string[] = [];
    for (let round = 0; round < 60; round++) {
      await sandbox.files.upload(place, entries(round)).catch(ignore);
      await sandbox.files.remove(at("swapped"), { recursive: true }).catch(ignore);
      for await (const { path } of sandbox.files.download(place)) downloaded.push(path);
    }
    await exec.kill({ graceMs: 0 });
    expect((await Array.fromAsync(sandbox.files.list(at("trap")))).map(({ path }) => path)).toEqual([at("trap/kept")]);
    expect(downloaded.filter((path) => /^swapped(\.link)?\/kept/.test(path))).toEqual([]);
  });

  test("an archive's entries stay below the directory they are put into", async () => {
    await inNewPlace("mkdir into && ln -s /etc into/link && ln -s .. into/up");
    const hostile = ["../out", "a/../../out", "/etc/out", "", ".", "..", "a//b", "link/out", "up/out", "./x", "a/."];
    for (const path of hostile) {
      for (const entry of [
        { type: "file", path, mode: 0o644, content: "x" },
        { type: "directory", path, mode: 0o755 },
        { type: "symlink", path, target: "/etc/passwd" },
      ] satisfies TreeEntry[])
        await expect(sandbox.files.upload(at("into"), [entry]), `${entry.type} ${path}`).rejects.toMatchObject({
          code: expect.stringMatching(/^(path_outside|invalid_request)$/),
        });
    }
    const chain: TreeEntry[] = [
      { type: "symlink", path: "x", target: "/etc" },
      { type: "file", path: "x/out", mode: 0o644, content: "x" },
    ];
    await expect(sandbox.files.upload(at("into"), chain)).rejects.toMatchObject({ code: "path_outside" });
    const { stdout } = await run(sandbox, `ls -A ${place} /etc | grep -x out; true`);
    expect(stdout).toBe("");
  });

  test("names with line ends, control characters and no UTF-8 stay one name each", async () => {
    await inNewPlace(
      "python3 -c \"import os\nfor n in (b'a\\nb', b'\\x1b[2J', b'\\xff\\xfe', b' ', b'-rf', b'*', b'a\\\\\\\\b'): os.close(os.open(n, os.O_CREAT))\"",
    );
    const listed = (await Array.fromAsync(sandbox.files.list(place))).map(({ path }) => path.slice(place.length + 1));
    expect(listed).toHaveLength(7);
    expect(listed).toEqual(expect.arrayContaining(["a\nb", "\u001b[2J", " ", "-rf", "*", "a\\b"]));
    const found = await Array.fromAsync(sandbox.files.download(place));
    expect(found).toHaveLength(7);
    await sandbox.files.remove(place, { recursive: true });
  });

  test("a tree of fifteen hundred levels is refused or removed, and hangs nothing", async () => {
    await inNewPlace("python3 -c \"import os\nfor i in range(1500): os.mkdir('d'); os.chdir('d')\"");
    const coded = { code: expect.stringMatching(/^(invalid_request|too_large|path_outside)$/) };
    await expect(Array.fromAsync(sandbox.files.list(place, { glob: "**", signal: signal() }))).rejects.toMatchObject(
      coded,
    );
    await expect(Array.fromAsync(sandbox.files.download(place, { signal: signal() }))).rejects.toMatchObject(coded);
    await expect(Array.fromAsync(sandbox.files.search("x", { path: place, signal: signal() }))).rejects.toMatchObject(
      coded,
    );
    const watch = sandbox.files.watch(place, { recursive: true, signal: signal() })[Symbol.asyncIterator]();
    let isSeen = false;
    const change = watch.next().finally(() => {
      isSeen = true;
    });
    // It takes a while until all levels are watched.
    while (!isSeen) await sandbox.files.write(at("new"), "x");
    await change;
    await watch.return?.();
    await sandbox.files
      .remove(place, { recursive: true, signal: signal() })
      .catch((error: unknown) => expect(error).toMatchObject(coded));
    expect((await run(sandbox, `rm -rf ${place}`)).exitCode).toBe(0);
  });

  test("a directory of twenty thousand entries is listed whole", async () => {
    await inNewPlace("python3 -c \"import os\nfor i in range(20000): os.close(os.open('f%d' % i, os.O_CREAT))\"");
    let count = 0;
    for await (const _ of sandbox.files.list(place)) count++;
    expect(count).toBe(20_000);
    await sandbox.files.remove(place, { recursive: true });
  });

  test("a file is never longer than the disk limit, holes or not", async () => {
    await inNewPlace("true");
    const { stdout } = await run(
      sandbox,
      `truncate -s 1T ${at("huge")} 2>&1; truncate -s 257M ${at("large")} 2>&1; stat -c %s ${at("huge")} ${at("large")} /dev/null; true`,
    );
    expect(stdout).toMatch(/File too large|File size limit/);
    expect(stdout).not.toMatch(/^[1-9]\d{8,}$/m);
  });

  test("what /proc shows can be read, and ends nothing", async () => {
    await inNewPlace(
      "ln -s /proc/self/mem mem && ln -s /proc/self/pagemap pagemap && ln -s /proc/self/environ environ",
    );
    for (const name of ["mem", "pagemap", "environ"])
      await readBytes(sandbox.files, at(name), { maxBytes: 1 << 20, signal: signal() }).catch((error: unknown) =>
        expect(error).toHaveProperty("code"),
      );
    await expect(sandbox.files.write("/proc/sys/kernel/core_pattern", "|/bin/false")).rejects.toThrow();
    await expect(sandbox.files.write("/proc/self/oom_score_adj", "0")).rejects.toThrow();
    await expect(sandbox.files.remove("/proc/1", { recursive: true })).rejects.toThrow();
    await expect(sandbox.files.remove("/usr/bin", { recursive: true })).rejects.toMatchObject({
      code: "file_forbidden",
    });
    expect((await run(sandbox, ["true"])).exitCode).toBe(0);
  });
});
