import { SlipwayError } from "@slipway/contract";
import type { Git, GitOptions } from "./git.ts";

/** Object names become arguments of git, so nothing else may pass. */
export function isObjectName(text: string): boolean {
  return /^[0-9a-f]{40}$/.test(text);
}

export function checkObjectNames(...names: readonly string[]): void {
  for (const name of names) {
    if (!isObjectName(name))
      throw new SlipwayError("invalid_request", `${JSON.stringify(name)} is not the name of a git object`);
  }
}

/** Splits a stream at a byte, which is not part of the pieces. */
export async function* split(chunks: AsyncIterable<Buffer>, byte: number): AsyncGenerator<Buffer> {
  let rest: Buffer[] = [];
  for await (const chunk of chunks) {
    let from = 0;
    for (let at = chunk.indexOf(byte); at !== -1; at = chunk.indexOf(byte, from)) {
      yield Buffer.concat([...rest, chunk.subarray(from, at)]);
      rest = [];
      from = at + 1;
    }
    if (from < chunk.length) rest.push(chunk.subarray(from));
  }
  if (rest.length > 0) yield Buffer.concat(rest);
}

/** The fields of an output in which every field ends with a zero byte. */
export function fieldsOf(answer: Buffer): string[] {
  return answer.toString("utf8").split("\0").slice(0, -1);
}

/** The text of an output of one line. */
export function line({ stdout }: { readonly stdout: Buffer }): string {
  return stdout.toString("utf8").trimEnd();
}

export interface Blob {
  readonly bytes: number;
  /** Undefined: beyond the limits. */
  readonly content: Buffer | undefined;
}

export interface BlobLimits {
  readonly eachBytes: number;
  readonly totalBytes: number;
}

/** Reads blobs by name: the size of each, and the content while it is within the limits. */
export async function readBlobs(
  git: Git,
  names: Iterable<string>,
  limits: BlobLimits,
  options: Pick<GitOptions, "signal"> = {},
): Promise<Map<string, Blob>> {
  const asked = [...new Set(names)];
  const found = new Map<string, Blob>();
  if (asked.length === 0) return found;
  const check = ["cat-file", "--batch-check=%(objecttype) %(objectsize)"];
  const { stdout: sizes } = await git.run(check, { ...options, input: lines(asked) });
  const wanted: string[] = [];
  let totalBytes = 0;
  for (const [index, line] of sizes.toString("latin1").split("\n").slice(0, -1).entries()) {
    const [type, size] = line.split(" ");
    if (type !== "blob") continue;
    const name = asked[index] ?? "";
    const bytes = Number(size);
    found.set(name, { bytes, content: undefined });
    if (bytes > limits.eachBytes || totalBytes + bytes > limits.totalBytes) continue;
    totalBytes += bytes;
    wanted.push(name);
  }
  if (wanted.length === 0) return found;
  const limit = { ...options, outputBytes: totalBytes + wanted.length * 100 };
  const { stdout } = await git.run(["cat-file", "--batch=%(objectname)"], { ...limit, input: lines(wanted) });
  let at = 0;
  for (const name of wanted) {
    const { bytes } = found.get(name) ?? { bytes: 0 };
    const start = at + name.length + 1;
    found.set(name, { bytes, content: stdout.subarray(start, start + bytes) });
    at = start + bytes + 1;
  }
  return found;
}

/** One name per line, as git reads them. */
export function lines(names: readonly string[]): string {
  return names.map((name) => `${name}\n`).join("");
}

/** Looks for a zero byte near the start, as git does. */
export function isBinary(content: Buffer): boolean {
  return content.subarray(0, 8000).includes(0);
}
