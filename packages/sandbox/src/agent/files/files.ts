import { posix } from "node:path";
import { SlipwayError } from "@slipway/contract";
import picomatch from "picomatch";
import { holdPath } from "../../input.ts";
import type { SandboxFiles, TreeEntry } from "../../provider.ts";
import { type Dial, expectDone, nextFrame, openCall } from "../connection.ts";
import { encodeFrame, type Fields, frameType, MalformedFrame, streamFrameBytes } from "../wire.ts";
import { contentFrames, decodeChange, decodeEntry, decodeMatch, treeEntries, treeFrames } from "./tree.ts";

export interface FilesHost {
  readonly dial: Dial;
  /** Absolute; relative paths start here. */
  readonly workdir: string;
}

export function createFiles({ dial, workdir }: FilesHost): SandboxFiles {
  const resolve = (path: string) => holdPath(path, workdir);
  const upload = async (
    base: string,
    entries: AsyncIterable<TreeEntry> | Iterable<TreeEntry>,
    signal?: AbortSignal,
  ) => {
    const answer = await send(dial, "U", { p: base }, treeFrames(entries), base, signal);
    return { entries: Number(answer.readBigUInt64LE(0)), bytes: Number(answer.readBigUInt64LE(8)) };
  };
  const perform = async (operation: string, fields: Fields, subject: string, signal?: AbortSignal) => {
    using call = await openCall(dial, operation, fields, signal);
    await expectDone(call, subject);
  };
  /** Decodes each frame of a type until the operation is done. */
  async function* stream<T>(
    operation: string,
    fields: Fields & { readonly p: string },
    type: number,
    decode: (payload: Buffer) => T,
    signal?: AbortSignal,
  ) {
    using call = await openCall(dial, operation, fields, signal);
    for (;;) {
      const frame = await nextFrame(call, fields.p);
      if (frame.type === type) yield decode(frame.payload);
      else if (frame.type === frameType.done || frame.type === frameType.end) return;
    }
  }
  return {
    async *read(path, { offset = 0, length, signal } = {}) {
      const p = resolve(path);
      const n = length === undefined ? undefined : wholeNumber(length, "length");
      using call = await openCall(dial, "r", { p, o: wholeNumber(offset, "offset"), n }, signal);
      await expectDone(call, p);
      let left = length ?? Number.POSITIVE_INFINITY;
      let frame = await nextFrame(call, p);
      for (; frame.type === frameType.data; frame = await nextFrame(call, p)) {
        left -= frame.payload.length;
        if (left < 0) throw new MalformedFrame("The agent sent more of a file than was asked for.");
        yield frame.payload;
      }
    },
    async write(path, content, { mode, signal } = {}) {
      const p = resolve(path);
      const answer = await send(dial, "w", { p, m: octal(mode) }, ended(contentFrames(content)), p, signal);
      return { bytes: Number(answer.readBigUInt64LE(0)) };
    },
    async stat(path, { followSymlink = false, signal } = {}) {
      const p = resolve(path);
      using call = await openCall(dial, "t", { p, f: flag(followSymlink) }, signal);
      const frame = await nextFrame(call, p);
      if (frame.type !== frameType.entry) throw new MalformedFrame("The answer to a stat is no entry.");
      return decodeEntry(frame.payload);
    },
    async *list(path, { glob, signal } = {}) {
      const p = resolve(path);
      const matches = matcher(glob, p);
      const d = String(glob === undefined ? 1 : depthOf(glob));
      for await (const info of stream("l", { p, d }, frameType.entry, decodeEntry, signal))
        if (matches(info.path)) yield info;
    },
    async mkdir(path, { mode, signal } = {}) {
      const p = resolve(path);
      await perform("k", { p, m: octal(mode) }, p, signal);
    },
    async move(from, to, { overwrite = false, signal } = {}) {
      const [p, q] = [resolve(from), resolve(to)];
      await perform("v", { p, q, f: flag(overwrite) }, `${p} to ${q}`, signal);
    },
    async remove(path, { recursive = false, signal } = {}) {
      const p = resolve(path);
      await perform("d", { p, r: flag(recursive) }, p, signal);
    },
    async *watch(path, { recursive = false, signal } = {}) {
      const p = resolve(path);
      using call = await openCall(dial, "n", { p, r: flag(recursive) }, signal);
      await expectDone(call, p);
      for (;;) yield decodeChange((await nextFrame(call, p)).payload);
    },
    async *search(query, { path = ".", regex = false, glob, maxMatches, signal } = {}) {
      const p = resolve(path);
      if (query === "" || query.includes("\0"))
        throw new SlipwayError("invalid_request", "A search text is not empty and holds no NUL.");
      const matches = matcher(glob, p);
      let left = maxMatches ?? Number.POSITIVE_INFINITY;
      if (left < 1) return;
      // With a glob, the agent must not count the matches that the glob leaves out.
      const n = maxMatches === undefined || glob !== undefined ? undefined : wholeNumber(maxMatches, "maxMatches");
      const fields = { p, q: query, x: flag(regex), n };
      for await (const match of stream("g", fields, frameType.match, decodeMatch, signal)) {
        if (!matches(match.path)) continue;
        yield match;
        if (--left === 0) return;
      }
    },
    upload: async (path, entries, { signal } = {}) => await upload(resolve(path), entries, signal),
    async *download(path, { signal } = {}) {
      const p = resolve(path);
      using call = await openCall(dial, "D", { p }, signal);
      yield* treeEntries(call, p);
    },
    async hydrate(files, { signal } = {}) {
      for (const [base, entries] of byBase(workdir, files)) await upload(base, entries, signal);
    },
  };
}

/** Sends content until it ends or the agent refuses it. */
async function send(
  dial: Dial,
  operation: string,
  fields: Fields,
  frames: AsyncIterable<Buffer>,
  subject: string,
  signal?: AbortSignal,
) {
  using call = await openCall(dial, operation, fields, signal);
  let isOver = false;
  const answer = expectDone(call, subject);
  const over = () => {
    isOver = true;
  };
  answer.then(over, over);
  let gathered: Buffer[] = [];
  let bytes = 0;
  const flush = async () => {
    const data = gathered.length === 1 ? (gathered[0] as Buffer) : Buffer.concat(gathered);
    gathered = [];
    bytes = 0;
    // The answer says why the connection ended.
    await call.send(data).catch(over);
  };
  for await (const frame of frames) {
    if (isOver) break;
    gathered.push(frame);
    bytes += frame.length;
    if (bytes >= streamFrameBytes) await flush();
  }
  if (!isOver) await flush();
  return await answer;
}

async function* ended(frames: AsyncIterable<Buffer>): AsyncIterable<Buffer> {
  yield* frames;
  yield encodeFrame(frameType.end);
}

/** A field that counts by being there. */
function flag(isSet: boolean): "" | undefined {
  return isSet ? "" : undefined;
}

function wholeNumber(value: number, name: string): string {
  if (!Number.isSafeInteger(value) || value < 0)
    throw new SlipwayError("invalid_request", `${name} must be a whole number.`);
  return String(value);
}

function octal(mode: number | undefined): string | undefined {
  if (mode !== undefined && (!Number.isInteger(mode) || mode < 0 || mode > 0o7777))
    throw new SlipwayError("invalid_request", `${mode} is not a file mode.`);
  return mode?.toString(8);
}

/** Matches absolute paths by a glob that is relative to `directory`. */
function matcher(glob: string | undefined, directory: string): (path: string) => boolean {
  if (glob === undefined) return () => true;
  try {
    // A name may have a line break, which a dot of a regular expression leaves out.
    const matches = picomatch(glob, { dot: true, flags: "s" });
    return (path) => matches(posix.relative(directory, path));
  } catch (cause) {
    throw new SlipwayError("invalid_request", `Invalid glob ${JSON.stringify(glob)}.`, { cause });
  }
}

/** How many levels down a glob can match; 0: any number. */
function depthOf(glob: string): number {
  return /\*\*|[({[!+@?]/.test(glob) ? 0 : glob.split("/").length;
}

/** Files below the workdir are based there: an upload follows no link below its base, and the workdir may have links. */
function byBase(workdir: string, files: Readonly<Record<string, string | Uint8Array>>): Map<string, TreeEntry[]> {
  const bases = new Map<string, TreeEntry[]>();
  for (const [path, content] of Object.entries(files)) {
    const resolved = holdPath(path, workdir);
    const base = resolved.startsWith(`${workdir}/`) ? workdir : "/";
    const entries = bases.get(base) ?? [];
    bases.set(base, entries);
    entries.push({ type: "file", path: posix.relative(base, resolved), mode: 0o644, content });
  }
  return bases;
}
