import { closeSync, fstatSync, mkdtempSync, openSync, rmSync, statSync, unlinkSync, writeSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { rootDevice, unlinkedBytes, writtenBytes } from "./unlinked.ts";

const mebibyte = 1024 * 1024;
const nobody = 4_194_304;

/** Of this process, on a disk. */
async function counted(work: (directory: string) => number[]): Promise<{ unlinked: number; written: number }> {
  const directory = mkdtempSync("/var/tmp/slipway-unlinked-");
  const { dev } = statSync(directory);
  const pids = [process.pid, nobody];
  const before = { unlinked: await unlinkedBytes(pids, dev), written: writtenBytes(pids) };
  const descriptors = work(directory);
  try {
    const after = { unlinked: await unlinkedBytes(pids, dev), written: writtenBytes(pids) };
    return { unlinked: after.unlinked - before.unlinked, written: after.written - before.written };
  } finally {
    for (const descriptor of descriptors) closeSync(descriptor);
    rmSync(directory, { recursive: true });
  }
}

function fileOf(path: string, bytes: number): number {
  const file = openSync(path, "wx+");
  if (bytes > 0) writeSync(file, Buffer.alloc(bytes, 1));
  return file;
}

test("a file that no directory shows counts once, however often it is open; others do not", async () => {
  let takes = 0;
  const { unlinked } = await counted((directory) => {
    const path = join(directory, "file");
    const file = fileOf(path, 2 * mebibyte);
    unlinkSync(path);
    takes = fstatSync(file).blocks * 512;
    return [file, openSync(`/proc/self/fd/${file}`, "r"), fileOf(join(directory, "shown"), mebibyte)];
  });
  expect(unlinked).toBe(takes);
  expect(takes).toBeGreaterThanOrEqual(2 * mebibyte);
});

test("one without content counts as a small one", async () => {
  const { unlinked } = await counted((directory) => {
    const file = fileOf(join(directory, "file"), 0);
    unlinkSync(join(directory, "file"));
    return [file];
  });
  expect(unlinked).toBe(4096);
});

test("files of another file system, and processes that have gone, do not count", async () => {
  expect(await unlinkedBytes([nobody], statSync("/var/tmp").dev)).toBe(0);
  expect(await unlinkedBytes([process.pid], -1)).toBe(0);
  expect(writtenBytes([nobody])).toBe(0);
  expect(rootDevice(nobody)).toBeNull();
});

test("what is written is known, whether its file is there or not", async () => {
  const { written } = await counted((directory) => {
    closeSync(fileOf(join(directory, "file"), 2 * mebibyte));
    unlinkSync(join(directory, "file"));
    return [];
  });
  expect(written).toBeGreaterThanOrEqual(2 * mebibyte);
});
