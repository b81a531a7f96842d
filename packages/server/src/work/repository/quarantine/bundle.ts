import { SlipwayError } from "@slipway/contract";
import type { Git, GitOptions } from "../git.ts";
import { isObjectName } from "../objects.ts";
import { refuse } from "./refusal.ts";

/** What a bundle claims ahead of its pack. */
interface BundleHeader {
  /** Commits that the receiver must have. */
  readonly needs: readonly string[];
  readonly tip: string;
}

const headerBytes = 64 * 1024;
const mostNeeds = 256;

/** Reads the header; the caller reads the pack. Refuses anything but a bundle of exactly this one ref. */
export async function openBundle(
  chunks: AsyncIterable<Uint8Array>,
  { ref, mostBytes, signal }: { readonly ref: string; readonly mostBytes: number; readonly signal: AbortSignal },
): Promise<BundleHeader & { readonly pack: AsyncIterable<Uint8Array> }> {
  const iterator = limited(chunks, mostBytes);
  try {
    let start = Buffer.alloc(0);
    for (let end = -1; end === -1; end = start.indexOf("\n\n")) {
      const next = start.length > headerBytes ? undefined : (await unlessAborted(iterator.next(), signal)).value;
      if (next === undefined) throw refuse(noBundle);
      start = Buffer.concat([start, next]);
    }
    const end = start.indexOf("\n\n");
    const header = parseHeader(start.subarray(0, end).toString("utf8"), ref);
    return { ...header, pack: following(start.subarray(end + 2), iterator) };
  } catch (error) {
    // Not awaited: it ends with the pending chunk, which may never come.
    iterator.return(undefined).catch(() => {});
    throw error;
  }
}

async function unlessAborted<T>(work: Promise<T>, signal: AbortSignal): Promise<T> {
  const aborted = Promise.withResolvers<never>();
  const abort = () => aborted.reject(new SlipwayError("aborted", "the caller aborted", { cause: signal.reason }));
  if (signal.aborted) abort();
  signal.addEventListener("abort", abort, { once: true });
  try {
    return await Promise.race([work, aborted.promise]);
  } finally {
    signal.removeEventListener("abort", abort);
  }
}

const noBundle = "not a git bundle";

async function* limited(chunks: AsyncIterable<Uint8Array>, mostBytes: number): AsyncGenerator<Uint8Array, undefined> {
  let bytes = 0;
  for await (const chunk of chunks) {
    bytes += chunk.length;
    if (bytes > mostBytes) throw refuse(`the bundle has more than ${mostBytes} bytes`);
    yield chunk;
  }
}

async function* following(first: Uint8Array, rest: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  if (first.length > 0) yield first;
  yield* rest;
}

function parseHeader(text: string, ref: string): BundleHeader {
  const [signature, ...lines] = text.split("\n");
  const needs: string[] = [];
  const refs: { readonly name: string; readonly ref: string }[] = [];
  if (signature !== "# v2 git bundle" && signature !== "# v3 git bundle") throw refuse(noBundle);
  for (const line of lines) {
    if (line === "@object-format=sha1" && signature === "# v3 git bundle") continue;
    const [, minus, name = "", rest = ""] = /^(-?)([0-9a-f]{40})(?: (.*))?$/.exec(line) ?? [];
    if (!isObjectName(name)) throw refuse("the bundle's header has an unknown line");
    if (minus === "-") needs.push(name);
    else refs.push({ name, ref: rest });
  }
  const [only] = refs;
  if (only === undefined || refs.length > 1) throw refuse(`the bundle has ${refs.length} refs instead of one`);
  if (only.ref !== ref)
    throw refuse(`the bundle has the ref ${JSON.stringify(only.ref.slice(0, 200))} instead of ${ref}`);
  if (needs.length > mostNeeds) throw refuse(`the bundle needs more than ${mostNeeds} commits`);
  return { needs, tip: only.name };
}

/** Everything in `tip` that `base` lacks, for `git fetch` or `git clone`. */
export async function* makeBundle(
  git: Git,
  { base, tip, ref }: { readonly base: string | undefined; readonly tip: string; readonly ref: string },
  options: Pick<GitOptions, "signal">,
): AsyncGenerator<Buffer> {
  const need = base === undefined ? "" : `-${base} \n`;
  yield Buffer.from(`# v2 git bundle\n${need}${tip} ${ref}\n\n`);
  yield* git.stream(["pack-objects", "--revs", "--thin", "--stdout", "-q", "--delta-base-offset"], {
    ...options,
    input: base === undefined ? `${tip}\n` : `${tip}\n^${base}\n`,
    outputBytes: Number.POSITIVE_INFINITY,
    timeMs: 600_000,
  });
}
