import { SlipwayError } from "@slipway/contract";
import picomatch from "picomatch";
import type { SandboxFiles, TreeEntry } from "../../../provider.ts";
import { type AgentCall, type Dial, expectDone, openCall } from "../agent/connection.ts";
import { decodeFailure, fileError } from "../agent/errors.ts";
import { encodeFrame, type Field, frameType, MalformedFrame, streamFrameBytes } from "../agent/wire.ts";
import { relativeTo, resolvePath } from "./paths.ts";
import { contentFrames, decodeChange, decodeEntry, decodeMatch, nextOf, treeEntries, treeFrames } from "./tree.ts";

export interface FilesHost {
  readonly dial: Dial;
  /** Absolute; relative paths start here. */
  readonly workdir: string;
}

export function createFiles({ dial, workdir }: FilesHost): SandboxFiles {
  const resolve = (path: string) => resolvePath(workdir, path);
  const upload = async (
    base: string,
    entries: AsyncIterable<TreeEntry> | Iterable<TreeEntry>,
    signal?: AbortSignal,
  ) => {
    const answer = await send(dial, "U", [["p", base]], treeFrames(entries), base, signal);
    return { entries: Number(answer.readBigUInt64LE(0)), bytes: Number(answer.readBigUInt64LE(8)) };
  };
  const done = async (operation: string, fields: readonly Field[], subject: string, signal?: AbortSignal) => {
    await using call = disposable(await openCall(dial, operation, fields, signal));
    await expectDone(call, (payload) => fileError(decodeFailure(payload), subject));
  };
  /** What a decoder makes of each frame of a type, until the operation is done. */
  async function* stream<T>(
    operation: string,
    fields: Field[],
    subject: string,
    type: number,
    decode: (payload: Buffer) => T,
    signal?: AbortSignal,
  ) {
    await using call = disposable(await openCall(dial, operation, fields, signal));
    for (;;) {
      const frame = await nextOf(call, subject);
      if (frame.type === type) yield decode(frame.payload);
      else if (frame.type === frameType.done || frame.type === frameType.end) return;
    }
  }
  return {
    async *read(path, { offset = 0, length, signal } = {}) {
      const resolved = resolve(path);
      const fields: Field[] = [
        ["p", resolved],
        ["o", wholeNumber(offset, "offset")],
      ];
      if (length !== undefined) fields.push(["n", wholeNumber(length, "length")]);
      await using call = disposable(await openCall(dial, "r", fields, signal));
      await expectDone(call, (payload) => fileError(decodeFailure(payload), resolved));
      for (
        let frame = await nextOf(call, resolved);
        frame.type === frameType.data;
        frame = await nextOf(call, resolved)
      )
        yield frame.payload;
    },
    async write(path, content, { mode, signal } = {}) {
      const resolved = resolve(path);
      const fields: Field[] = [["p", resolved]];
      if (mode !== undefined) fields.push(["m", octal(mode)]);
      const answer = await send(dial, "w", fields, ended(contentFrames(content)), resolved, signal);
      return { bytes: Number(answer.readBigUInt64LE(0)) };
    },
    async stat(path, { followSymlink = false, signal } = {}) {
      const resolved = resolve(path);
      const fields: Field[] = followSymlink
        ? [
            ["p", resolved],
            ["f", ""],
          ]
        : [["p", resolved]];
      await using call = disposable(await openCall(dial, "t", fields, signal));
      const frame = await nextOf(call, resolved);
      if (frame.type !== frameType.entry) throw new MalformedFrame("a stat without an entry");
      return decodeEntry(frame.payload);
    },
    async *list(path, { glob, signal } = {}) {
      const resolved = resolve(path);
      const matches = glob === undefined ? null : matcher(glob);
      const depth = glob === undefined ? 1 : depthOf(glob);
      const entries = stream(
        "l",
        [
          ["p", resolved],
          ["d", String(depth)],
        ],
        resolved,
        frameType.entry,
        decodeEntry,
        signal,
      );
      for await (const info of entries) if (matches === null || matches(relativeTo(resolved, info.path))) yield info;
    },
    async mkdir(path, { mode, signal } = {}) {
      const resolved = resolve(path);
      await done(
        "k",
        mode === undefined
          ? [["p", resolved]]
          : [
              ["p", resolved],
              ["m", octal(mode)],
            ],
        resolved,
        signal,
      );
    },
    async move(from, to, { overwrite = false, signal } = {}) {
      const [source, target] = [resolve(from), resolve(to)];
      const fields: Field[] = [
        ["p", source],
        ["q", target],
      ];
      if (overwrite) fields.push(["f", ""]);
      await done("v", fields, `${source} to ${target}`, signal);
    },
    async remove(path, { recursive = false, signal } = {}) {
      const resolved = resolve(path);
      await done(
        "d",
        recursive
          ? [
              ["p", resolved],
              ["r", ""],
            ]
          : [["p", resolved]],
        resolved,
        signal,
      );
    },
    async *watch(path, { recursive = false, signal } = {}) {
      const resolved = resolve(path);
      const fields: Field[] = recursive
        ? [
            ["p", resolved],
            ["r", ""],
          ]
        : [["p", resolved]];
      await using call = disposable(await openCall(dial, "n", fields, signal));
      await expectDone(call, (payload) => fileError(decodeFailure(payload), resolved));
      for (;;) yield decodeChange((await nextOf(call, resolved)).payload);
    },
    async *search(query, { path = ".", regex = false, glob, maxMatches, signal } = {}) {
      const resolved = resolve(path);
      if (query === "" || query.includes("\0"))
        throw new SlipwayError("invalid_request", "expected a text without NUL");
      const matches = glob === undefined ? null : matcher(glob);
      let left = maxMatches ?? Number.POSITIVE_INFINITY;
      if (left < 1) return;
      const fields: Field[] = [
        ["p", resolved],
        ["q", query],
      ];
      if (regex) fields.push(["x", ""]);
      // Inside, every match counts; the glob is applied here.
      if (maxMatches !== undefined && matches === null) fields.push(["n", wholeNumber(maxMatches, "maxMatches")]);
      for await (const match of stream("g", fields, resolved, frameType.match, decodeMatch, signal)) {
        if (matches !== null && !matches(relativeTo(resolved, match.path))) continue;
        yield match;
        if (--left === 0) return;
      }
    },
    upload: async (path, entries, { signal } = {}) => await upload(resolve(path), entries, signal),
    async *download(path, { signal } = {}) {
      const resolved = resolve(path);
      await using call = disposable(await openCall(dial, "D", [["p", resolved]], signal));
      yield* treeEntries(call, resolved);
    },
    async hydrate(files, { signal } = {}) {
      for (const [base, entries] of byBase(workdir, files)) await upload(base, entries, signal);
    },
  };
}

/** Sends content while it listens: a refusal ends the sending. */
async function send(
  dial: Dial,
  operation: string,
  fields: readonly Field[],
  frames: AsyncIterable<Buffer>,
  subject: string,
  signal?: AbortSignal,
) {
  await using call = disposable(await openCall(dial, operation, fields, signal));
  let isOver = false;
  const answer = expectDone(call, (payload) => fileError(decodeFailure(payload), subject));
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

function disposable(call: AgentCall): AgentCall & AsyncDisposable {
  return Object.assign(call, { [Symbol.asyncDispose]: async () => call.close() });
}

function wholeNumber(value: number, name: string): string {
  if (!Number.isSafeInteger(value) || value < 0)
    throw new SlipwayError("invalid_request", `${name} is not a whole number`);
  return String(value);
}

function octal(mode: number): string {
  if (!Number.isInteger(mode) || mode < 0 || mode > 0o7777)
    throw new SlipwayError("invalid_request", `${mode} is not a file mode`);
  return mode.toString(8);
}

function matcher(glob: string): (path: string) => boolean {
  try {
    return picomatch(glob, { dot: true });
  } catch (cause) {
    throw new SlipwayError("invalid_request", "the glob can not be read", { cause });
  }
}

/** How far down a glob can match; 0: without limit. */
function depthOf(glob: string): number {
  return /\*\*|[({[!+@?]/.test(glob) ? 0 : glob.split("/").length;
}

/** Trees are held through no link, so what is below the workdir is put from there: the way to it may have links. */
function byBase(workdir: string, files: Readonly<Record<string, string | Uint8Array>>): Map<string, TreeEntry[]> {
  const bases = new Map<string, TreeEntry[]>();
  for (const [path, content] of Object.entries(files)) {
    const resolved = resolvePath(workdir, path);
    const base = resolved.startsWith(`${workdir}/`) ? workdir : "/";
    const entries = bases.get(base) ?? [];
    bases.set(base, entries);
    entries.push({ type: "file", path: relativeTo(base, resolved), mode: 0o644, content });
  }
  return bases;
}
