import type { FileChange, FileInfo, FileType, SearchMatch } from "@slipway/contract";
import { SlipwayError } from "@slipway/contract";
import type { Bytes, TreeEntry } from "../../provider.ts";
import { type AgentCall, type Frame, nextFrame } from "../connection.ts";
import { bytesFrames, encodeFrame, frameType, MalformedFrame, streamFrameBytes } from "../wire.ts";

/** A download yields files up to this size whole, and larger ones as streams. */
const wholeFileBytes = 1024 * 1024;

const fileTypes: Readonly<Record<string, FileType>> = { f: "file", d: "directory", l: "symlink", o: "other" };
const changeTypes: Readonly<Record<string, FileChange["type"]>> = { c: "created", m: "modified", r: "removed" };

export function decodeEntry(payload: Buffer): FileInfo {
  const pathEnd = payload.indexOf(0, 21);
  const type = fileTypes[String.fromCharCode(payload[0] ?? 0)];
  if (type === undefined || pathEnd < 0 || payload.at(-1) !== 0) throw new MalformedFrame("An entry is malformed.");
  return {
    path: payload.toString("utf8", 21, pathEnd),
    type,
    mode: payload.readUInt32LE(1),
    size: Number(payload.readBigUInt64LE(5)),
    modifiedAt: Number(payload.readBigInt64LE(13)),
    symlinkTarget: type === "symlink" ? payload.toString("utf8", pathEnd + 1, payload.length - 1) : null,
  };
}

export function decodeChange(payload: Buffer): FileChange {
  const type = changeTypes[String.fromCharCode(payload[0] ?? 0)];
  if (type === undefined) throw new MalformedFrame("A change is malformed.");
  return { type, path: payload.toString("utf8", 1) };
}

export function decodeMatch(payload: Buffer): SearchMatch {
  const pathEnd = payload.indexOf(0, 4);
  if (pathEnd < 0) throw new MalformedFrame("A match is malformed.");
  return {
    line: payload.readUInt32LE(0),
    path: payload.toString("utf8", 4, pathEnd),
    text: payload.toString("utf8", pathEnd + 1),
  };
}

export async function* contentFrames(content: Bytes): AsyncIterable<Buffer> {
  if (typeof content === "string" || content instanceof Uint8Array) yield* bytesFrames(content);
  else for await (const part of content) yield* bytesFrames(part);
}

export async function* treeFrames(entries: AsyncIterable<TreeEntry> | Iterable<TreeEntry>): AsyncIterable<Buffer> {
  for await (const entry of entries) {
    yield encodeTreeEntry(entry);
    if (entry.type === "file") yield* contentFrames(entry.content);
  }
  yield encodeFrame(frameType.end);
}

function encodeTreeEntry(entry: TreeEntry): Buffer {
  const target = entry.type === "symlink" ? entry.target : "";
  if (entry.path.includes("\0") || target.includes("\0")) {
    throw new SlipwayError("path_outside", "A name in a tree holds a NUL.");
  }
  const letter = entry.type === "directory" ? "d" : entry.type === "file" ? "f" : "l";
  const names = Buffer.from(`${entry.path}\0${target}\0`);
  const payload = Buffer.allocUnsafe(5 + names.length);
  payload.write(letter, 0, "latin1");
  payload.writeUInt32LE(entry.type === "symlink" ? 0o777 : entry.mode & 0o7777, 1);
  payload.set(names, 5);
  if (payload.length > streamFrameBytes) throw new SlipwayError("path_outside", "A name in a tree is too long.");
  return encodeFrame(frameType.treeEntry, payload);
}

/** The entries of a download, from its frames. */
export async function* treeEntries(call: AgentCall, root: string): AsyncIterable<TreeEntry> {
  let frame = await nextFrame(call, root);
  while (frame.type !== frameType.done) {
    if (frame.type !== frameType.entry) throw new MalformedFrame("A tree holds a frame that is no entry.");
    const info = decodeEntry(frame.payload);
    if (info.type !== "file") {
      yield info.type === "symlink"
        ? { type: "symlink", path: info.path, target: info.symlinkTarget ?? "" }
        : { type: "directory", path: info.path, mode: info.mode };
      frame = await nextFrame(call, root);
      continue;
    }
    const content = fileContent(call, root);
    const whole = info.size <= wholeFileBytes ? await collect(content.bytes) : null;
    yield { type: "file", path: info.path, mode: info.mode, content: whole ?? content.bytes };
    frame = await content.rest();
  }
}

/** The bytes of one file, and the frame that follows them. */
function fileContent(call: AgentCall, root: string): { bytes: AsyncIterable<Uint8Array>; rest(): Promise<Frame> } {
  let after: Frame | null = null;
  const step = async (): Promise<Buffer | null> => {
    if (after !== null) return null;
    const frame = await nextFrame(call, root);
    if (frame.type === frameType.data) return frame.payload;
    after = frame;
    return null;
  };
  return {
    bytes: {
      async *[Symbol.asyncIterator]() {
        for (let part = await step(); part !== null; part = await step()) yield part;
      },
    },
    async rest() {
      while ((await step()) !== null) {}
      return after as unknown as Frame;
    },
  };
}

async function collect(bytes: AsyncIterable<Uint8Array>): Promise<Uint8Array> {
  const parts: Uint8Array[] = [];
  for await (const part of bytes) parts.push(part);
  return parts.length === 1 ? (parts[0] as Uint8Array) : Buffer.concat(parts);
}
