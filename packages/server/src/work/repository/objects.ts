import { SlipwayError } from "@slipway/contract";
import type { Git, GitOptions } from "./git.ts";

/** Names of objects reach git as arguments: nothing else may pass for one. */
export function isObjectName(text: string): boolean {
  return /^[0-9a-f]{40}$/.test(text);
}

export function checkObjectNames(...names: readonly string[]): void {
  for (const name of names) {
    if (!isObjectName(name)) throw new SlipwayError("invalid_request", `${JSON.stringify(name)} names no git object`);
  }
}

/** Each part of what comes, without the byte that ends it. */
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

/** The fields of an answer in which every field ends with a zero byte. */
export function fieldsOf(answer: Buffer): string[] {
  return answer.toString("utf8").split("\0").slice(0, -1);
}

/** An answer of one line. */
export function line({ stdout }: { readonly stdout: Buffer }): string {
  return stdout.toString("utf8").trimEnd();
}

export interface Blob {
  readonly bytes: number;
  /** Undefined: more than was asked for. */
  readonly content: Buffer | undefined;
}

export interface BlobLimits {
  readonly eachBytes: number;
  readonly totalBytes: number;
}

/** Blobs by their names; of those within the limits the content, in the order of the names. */
export async function readBlobs(
  git: Git,
  names: Iterable<string>,
  limits: BlobLimits,
  options: Pick<GitOptions, "signal"> = {},
): Promise<Map<string, Blob>> {
  const asked = [...new Set(names)];
  const found = new Map<string, Blob>();
  if (asked.length === 0) return found;
  const { stdout: sizes } = await git.run(["cat-file", "--batch-check=%(objecttype) %(objectsize)"], {
    ...options,
    input: lines(asked),
  });
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
  const outputBytes = totalBytes + wanted.length * 100;
  const { stdout } = await git.run(["cat-file", "--batch=%(objectname)"], {
    ...options,
    input: lines(wanted),
    outputBytes,
  });
  let at = 0;
  for (const name of wanted) {
    const { bytes } = found.get(name) ?? { bytes: 0 };
    const start = at + name.length + 1;
    found.set(name, { bytes, content: stdout.subarray(start, start + bytes) });
    at = start + bytes + 1;
  }
  return found;
}

function lines(names: readonly string[]): string {
  return names.map((name) => `${name}\n`).join("");
}

/** A zero byte near the beginning, as git tells binaries. */
export function isBinary(content: Buffer): boolean {
  return content.subarray(0, 8000).includes(0);
}
