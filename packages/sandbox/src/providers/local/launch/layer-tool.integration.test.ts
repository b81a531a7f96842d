import { execFileSync, spawn } from "node:child_process";
import {
  chmodSync,
  existsSync,
  lchownSync,
  linkSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  statSync,
  truncateSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { createTestHost, type TestHost } from "./launch-fixture.ts";
import { inodesMappedForWriting } from "./layer-tool.ts";

let host: TestHost;
let work: string;
let count = 0;
beforeAll(async () => {
  host = await createTestHost();
});
beforeEach(() => {
  work = host.directory(`work-${count++}`);
});
afterAll(() => host[Symbol.asyncDispose]());

/** Runs a shell script in the work directory as the sandboxes' uid. */
function shell(script: string): void {
  const { identity } = host;
  const who = identity === null ? {} : { uid: identity.uid, gid: identity.gid };
  execFileSync("/bin/bash", ["--norc", "-euc", script], { cwd: work, env: { PATH: "/usr/bin:/bin" }, ...who });
}

/** Files of a tree with their inode, to see what was linked. */
const inode = (path: string) => lstatSync(join(work, path)).ino;
const copyRequest = (to: string, previous?: string) => ({
  from: join(work, "upper"),
  to: join(work, to),
  manifest: join(work, `${to}.manifest`),
  ...(previous && { previous: join(work, previous), previousManifest: join(work, `${previous}.manifest`) }),
});
/** Older than the clock's step, which a copy takes for still changing. */
const settle = () => sleep(50);

test("a copy keeps content, modes, times, links, whiteouts, opaque directories and holes", async () => {
  shell(`mkdir -p upper/dir/closed && cd upper && echo text > dir/file && chmod 4751 dir/file && touch -d 2001-02-03 dir/file
    ln -s /etc/passwd link; mkfifo fifo; mknod gone c 0 0; ln dir/file other; echo x > dir/closed/x; chmod 0 dir/closed/x dir/closed
    python3 -c "import os; os.setxattr('dir', 'user.overlay.opaque', b'y'); os.setxattr('dir', 'user.overlay.impure', b'y'); os.setxattr('other', 'user.note', b'n')"`);
  writeFileSync(join(work, "upper/sparse"), "begin");
  truncateSync(join(work, "upper/sparse"), 1 << 30);
  await host.layerTool.copy(copyRequest("copy"));
  const at = (path: string) => join(work, "copy", path);
  expect(readFileSync(at("dir/file"), "utf8")).toBe("text\n");
  expect(statSync(at("dir/file")).mode & 0o7777).toBe(0o4751);
  expect(statSync(at("dir/file")).mtime.getFullYear()).toBe(2001);
  expect(inode("copy/other")).toBe(inode("copy/dir/file"));
  expect(readlinkSync(at("link"))).toBe("/etc/passwd");
  expect(lstatSync(at("fifo")).isFIFO()).toBe(true);
  expect(lstatSync(at("gone"))).toMatchObject({ rdev: 0 });
  expect(lstatSync(at("dir/closed")).mode & 0o777).toBe(0);
  expect(statSync(at("sparse"))).toMatchObject({
    size: 1 << 30,
    blocks: expect.toSatisfy((blocks: number) => blocks < 100),
  });
  shell(
    `python3 -c "import os; assert os.listxattr('copy/dir') == ['user.overlay.opaque']; assert os.getxattr('copy/other', 'user.note') == b'n'"`,
  );
  expect(lstatSync(at("link")).uid).toBe(host.identity?.uid ?? process.getuid?.());
});

test("the next copy links what is unchanged and copies what is not", async () => {
  shell(
    "mkdir -p upper/a; for n in same written replaced moded; do echo $n > upper/a/$n; done; echo x > upper/removed",
  );
  await settle();
  await host.layerTool.copy(copyRequest("one"));
  shell(
    "cd upper; echo other > a/written; echo replaced > a/new; touch -r a/replaced a/new; mv a/new a/replaced; chmod 600 a/moded; rm removed; echo y > added",
  );
  await settle();
  await host.layerTool.copy(copyRequest("two", "one"));
  expect(inode("two/a/same")).toBe(inode("one/a/same"));
  for (const name of ["written", "replaced", "moded"]) expect(inode(`two/a/${name}`)).not.toBe(inode(`one/a/${name}`));
  expect(readFileSync(join(work, "two/a/written"), "utf8")).toBe("other\n");
  expect(statSync(join(work, "two/a/moded")).mode & 0o777).toBe(0o600);
  expect(readdirSync(join(work, "two")).sort()).toEqual(["a", "added"]);
  expect(inode("one/a/same")).not.toBe(inode("upper/a/same"));
});

test("a file that is mapped for writing is copied again", async () => {
  shell("mkdir upper; echo x > upper/mapped");
  await settle();
  await host.layerTool.copy({ ...copyRequest("one"), changing: [inode("upper/mapped")] });
  await host.layerTool.copy(copyRequest("two", "one"));
  expect(inode("two/mapped")).not.toBe(inode("one/mapped"));
});

test("files that a process maps for shared writing are found", async () => {
  shell("mkdir upper; echo x > upper/mapped");
  const program = `import mmap, os, sys; f = open("${work}/upper/mapped", "r+b"); m = mmap.mmap(f.fileno(), 0); print(*[l for l in open("/proc/self/maps") if "mapped" in l]); sys.stdout.flush(); sys.stdin.read()`;
  const child = spawn("/usr/bin/python3", ["-c", program], { stdio: ["pipe", "pipe", "inherit"] });
  await new Promise((resolve) => child.stdout.once("data", resolve));
  expect(await inodesMappedForWriting([child.pid ?? 0])).toEqual([inode("upper/mapped")]);
  child.stdin.end();
});

test("a failed copy says why", async () => {
  await expect(host.layerTool.copy(copyRequest("copy"))).rejects.toMatchObject({
    code: "internal",
    message: expect.stringMatching(/^slipway-launch: open .*upper: No such file/),
  });
  shell("mkdir upper; echo no > broken.manifest; mkdir broken");
  await expect(host.layerTool.copy(copyRequest("copy", "broken"))).rejects.toMatchObject({
    message: expect.stringContaining("is no manifest"),
  });
});

test("flatten merges layers as overlay would, and keeps what they delete below", async () => {
  shell(`mkdir -p low/kept low/hidden low/dir low/typed; echo 1 > low/kept/a; echo 1 > low/hidden/a; echo 1 > low/dir/a; echo 1 > low/file; echo 1 > low/typed/x; mknod low/earlier c 0 0
    mkdir -p high/kept high/hidden high/earlier; echo 2 > high/kept/b; echo 2 > high/hidden/b; mknod high/dir c 0 0; mknod high/base c 0 0; echo 2 > high/file; echo 2 > high/typed; echo 2 > high/earlier/new
    chmod 750 high/kept; python3 -c "import os; os.setxattr('high/hidden', 'user.overlay.opaque', b'y')"`);
  await host.layerTool.flatten({ to: join(work, "flat"), lowestFirst: [join(work, "low"), join(work, "high")] });
  const flat = (path: string) => join(work, "flat", path);
  expect(readdirSync(flat("kept")).sort()).toEqual(["a", "b"]);
  expect(statSync(flat("kept")).mode & 0o777).toBe(0o750);
  expect(readdirSync(flat("hidden"))).toEqual(["b"]);
  for (const path of ["dir", "base"]) expect(lstatSync(flat(path)).isCharacterDevice()).toBe(true);
  expect(readFileSync(flat("file"), "utf8")).toBe("2\n");
  expect(readFileSync(flat("typed"), "utf8")).toBe("2\n");
  expect(inode("flat/file")).toBe(inode("high/file"));
  shell(`python3 -c "import os
for name in ('hidden', 'earlier'): assert os.getxattr('flat/' + name, 'user.overlay.opaque') == b'y', name"`);
});

if (process.getuid?.() === 0) {
  test("layers keep the files of both users, and are measured and removed with them", async () => {
    const first = host.identity?.uid ?? 0;
    shell(
      "mkdir -p upper/theirs upper/back low/back; echo x > upper/theirs/file; ln -s x upper/link; mkfifo upper/pipe",
    );
    const give = (path: string) => lchownSync(join(work, path), first + 1, first + 1);
    for (const path of ["upper/theirs", "upper/theirs/file", "upper/link", "upper/pipe", "low/back"]) give(path);
    for (const path of ["upper/theirs", "upper/theirs/file"])
      chmodSync(join(work, path), path.endsWith("file") ? 0o4700 : 0);
    await settle();
    await host.layerTool.copy(copyRequest("copy"));
    await host.layerTool.copy(copyRequest("again", "copy"));
    await host.layerTool.flatten({ to: join(work, "flat"), lowestFirst: [join(work, "low"), join(work, "again")] });
    for (const to of ["copy", "flat"]) {
      const owner = (path: string) => lstatSync(join(work, to, path)).uid - first;
      expect(["", "theirs", "theirs/file", "link", "pipe", "back"].map(owner)).toEqual([0, 1, 1, 1, 1, 0]);
      expect(lstatSync(join(work, to, "theirs/file")).mode & 0o7777).toBe(0o4700);
    }
    expect(inode("again/theirs/file")).toBe(inode("copy/theirs/file"));
    expect(await host.layerTool.measure(work)).toBeGreaterThan(0);
    for (const tree of ["upper", "low", "copy", "again", "flat"]) await host.layerTool.remove(join(work, tree));
    expect(readdirSync(work).filter((name) => !name.endsWith(".manifest"))).toEqual([]);
  });

  test("files of other users stay out of its reach", async () => {
    mkdirSync(join(work, "upper"));
    writeFileSync(join(work, "upper/secret"), "x", { mode: 0o600 });
    await expect(host.layerTool.copy(copyRequest("copy"))).rejects.toThrow(/Permission denied/);
  });
}

test("measure counts each file once, and no further than asked", async () => {
  mkdirSync(join(work, "tree"));
  writeFileSync(join(work, "tree/a"), Buffer.alloc(1 << 20));
  linkSync(join(work, "tree/a"), join(work, "tree/b"));
  const bytes = await host.layerTool.measure(join(work, "tree"));
  expect(bytes).toBeGreaterThanOrEqual(1 << 20);
  expect(bytes).toBeLessThan(1.1 * (1 << 20));
  expect(await host.layerTool.measure(join(work, "tree"), { mostBytes: 100 })).toBeGreaterThan(100);
});

/** Deeper than a path can name: made by going down, one directory at a time. */
const makeDeep =
  "python3 -c \"import os; os.mkdir('deep'); os.chdir('deep')\nfor i in range(5000): os.mkdir('d'); os.chdir('d')\nopen('f', 'w').write('x')\"";

test("a tree too deep to look through counts as endless, is not copied, and can be removed", async () => {
  shell(`mkdir upper; cd upper; ${makeDeep}`);
  expect(await host.layerTool.measure(join(work, "upper"), { mostBytes: 1e15 })).toBeGreaterThan(1e15);
  await expect(host.layerTool.copy(copyRequest("copy"))).rejects.toMatchObject({
    message: expect.stringContaining("nested deeper"),
  });
  await host.layerTool.remove(join(work, "upper"));
  await host.layerTool.remove(join(work, "copy"));
  expect(existsSync(join(work, "upper"))).toBe(false);
});

test("remove takes closed directories, follows no link, and is content with nothing", async () => {
  const outside = mkdtempSync(join(tmpdir(), "slipway-outside-"));
  writeFileSync(join(outside, "kept"), "");
  shell(
    `mkdir -p tree/closed/in; echo x > tree/closed/in/x; ln -s ${outside} tree/link; chmod 0 tree/closed/in tree/closed`,
  );
  await host.layerTool.remove(join(work, "tree"));
  await host.layerTool.remove(join(work, "tree"));
  expect(readdirSync(work)).toEqual([]);
  expect(readdirSync(outside)).toEqual(["kept"]);
});
