import { setImmediate as nextRound } from "node:timers/promises";
import type { ChangedFile } from "../changes.ts";
import type { Git, GitOptions } from "../git.ts";
import { type Blob, isBinary, readBlobs } from "../objects.ts";
import { type SecretSign, secretSigns } from "../secrets.ts";
import { emptiedElsewhere, type FileTexts, isTest, type TestChange, testChange } from "../tests-changed.ts";

/** Facts about a change for gates to judge. None refuses a candidate by itself. */
export interface Examined {
  readonly binaries: readonly { readonly path: string; readonly bytes: number }[];
  readonly secrets: readonly SecretSign[];
  /** Existing tests that were changed or deleted. */
  readonly tests: readonly TestChange[];
  /** Files beyond the size limits, which were not read. */
  readonly unread: readonly string[];
}

export interface ExamineLimits {
  /** Smaller binaries, such as icons, are not reported. */
  readonly binaryBytes: number;
  readonly eachBytes: number;
  readonly totalBytes: number;
}

export const usualExamineLimits: ExamineLimits = {
  binaryBytes: 256 * 1024,
  eachBytes: 1024 ** 2,
  totalBytes: 32 * 1024 ** 2,
};

export async function examine(
  git: Git,
  changes: readonly ChangedFile[],
  limits: ExamineLimits,
  options: Pick<GitOptions, "signal"> = {},
): Promise<Examined> {
  const names = changes.flatMap(({ before, after }) => [after, before]).filter((name) => name !== undefined);
  const blobs = await readBlobs(git, names, limits, options);
  const binaries: { path: string; bytes: number }[] = [];
  const secrets: SecretSign[] = [];
  const tests: TestChange[] = [];
  const unread: string[] = [];
  const texts: FileTexts[] = [];
  for (const file of changes) {
    // Yields to the event loop after each file.
    await nextRound();
    const [before, after] = [side(blobs, file.before), side(blobs, file.after)];
    const wasTest = file.before !== undefined && (isTest(file.from ?? file.path) || isTest(file.path));
    if (after.binary && after.bytes > limits.binaryBytes) binaries.push({ path: file.path, bytes: after.bytes });
    secrets.push(...secretSigns(file.path, before.text, after.text));
    if (wasTest) tests.push(testChange(file, before.text, after.text));
    if (wasTest || isTest(file.path)) {
      texts.push({ path: file.from ?? file.path, before: before.text, after: after.text });
    }
    if (before.unread || after.unread) unread.push(file.path);
  }
  const elsewhere = emptiedElsewhere(texts);
  const all = tests.map((one) => ({ ...one, emptied: one.emptied + (elsewhere.get(one.path) ?? 0) }));
  return { binaries, secrets, tests: all, unread };
}

/** Treats an unread file as a binary. */
function side(blobs: ReadonlyMap<string, Blob>, name: string | undefined) {
  const { bytes = 0, content } = (name !== undefined && blobs.get(name)) || {};
  const unread = name !== undefined && content === undefined;
  const binary = content === undefined ? unread : isBinary(content);
  return { bytes, binary, unread, text: binary || content === undefined ? "" : content.toString("utf8") };
}
