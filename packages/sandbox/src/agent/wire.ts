/** Requests and frames as native/PROTOCOL.md has them. */

export const maxFrameBytes = 256 * 1024;
const maxRequestBytes = 2 * 1024 * 1024;
export const frameHeaderBytes = 5;
export const exitPayloadBytes = 33;
/** The most of a stream that the host puts into one frame. */
export const streamFrameBytes = 64 * 1024;

/** Frame types, as the byte that stands for them. */
export const frameType = {
  done: 0x4b,
  failed: 0x46,
  stdout: 0x6f,
  stderr: 0x65,
  exit: 0x78,
  data: 0x64,
  entry: 0x6e,
  match: 0x6d,
  change: 0x76,
  bytes: 0x69,
  end: 0x63,
  treeEntry: 0x68,
  windowSize: 0x77,
  signal: 0x73,
  kill: 0x6b,
  start: 0x61,
  truncated: 0x74,
} as const;

/** Fields by key: a list repeats its key, undefined leaves it out. Callers make sure that no value holds a NUL. */
export type Fields = Readonly<Record<string, string | readonly string[] | undefined>>;

export function encodeRequest(operation: string, fields: Fields = {}): Buffer {
  let body = operation;
  for (const key in fields) for (const value of [fields[key] ?? []].flat()) body += `${key}${value}\0`;
  const length = Buffer.byteLength(body);
  if (length > maxRequestBytes) throw new RangeError(`A request of ${length} bytes exceeds ${maxRequestBytes}.`);
  const request = Buffer.allocUnsafe(4 + length);
  request.writeUInt32LE(length, 0);
  request.write(body, 4);
  return request;
}

export function encodeFrame(type: number, payload: Uint8Array = empty): Buffer {
  const { length } = payload;
  if (length > maxFrameBytes) throw new RangeError(`A frame of ${length} bytes exceeds ${maxFrameBytes}.`);
  const frame = Buffer.allocUnsafe(frameHeaderBytes + length);
  frame[0] = type;
  frame.writeUInt32LE(length, 1);
  frame.set(payload, frameHeaderBytes);
  return frame;
}

/** Bytes of standard input, or of a file, as frames. */
export function* bytesFrames(data: Uint8Array | string): Iterable<Buffer> {
  const bytes = typeof data === "string" ? Buffer.from(data) : data;
  for (let at = 0; at < bytes.length; at += streamFrameBytes)
    yield encodeFrame(frameType.bytes, bytes.subarray(at, at + streamFrameBytes));
}

export function encodeKill(graceMs: number): Buffer {
  const payload = Buffer.allocUnsafe(4);
  payload.writeUInt32LE(Math.min(graceMs, 0xffff_ffff));
  return encodeFrame(frameType.kill, payload);
}

export function encodeWindowSize(size: { cols: number; rows: number }): Buffer {
  const payload = Buffer.allocUnsafe(4);
  payload.writeUInt16LE(size.cols, 0);
  payload.writeUInt16LE(size.rows, 2);
  return encodeFrame(frameType.windowSize, payload);
}

/** Where a decoder puts what it reads. Bytes of streams come as they arrive, in parts; every other frame comes whole. */
export interface FrameSink {
  stream(type: number, data: Buffer): void;
  frame(type: number, payload: Buffer): void;
}

export class MalformedFrame extends Error {
  override readonly name = "MalformedFrame";
}

export function isStream(type: number): boolean {
  return type === frameType.stdout || type === frameType.stderr || type === frameType.data;
}

/** Checks the length of a frame. The start of a log holds the arguments and may be as long as their request. */
export function frameLength(type: number, length: number): number {
  if (length > (type === frameType.start ? maxRequestBytes : maxFrameBytes))
    throw new MalformedFrame(`A frame has ${length} bytes.`);
  return length;
}

export class FrameDecoder {
  readonly #sink: FrameSink;
  #header: Buffer = empty;
  #type = 0;
  #rest = 0;
  #inPayload = false;
  #parts: Buffer[] = [];

  constructor(sink: FrameSink) {
    this.#sink = sink;
  }

  push(chunk: Buffer): void {
    let at = 0;
    while (at < chunk.length) {
      if (!this.#inPayload) {
        at = this.#takeHeader(chunk, at);
        if (!this.#inPayload) return;
        if (this.#rest === 0) this.#finish(empty);
        continue;
      }
      const end = Math.min(chunk.length, at + this.#rest);
      this.#takePayload(chunk.subarray(at, end));
      at = end;
    }
  }

  #takeHeader(chunk: Buffer, at: number): number {
    const missing = frameHeaderBytes - this.#header.length;
    if (chunk.length - at < missing) {
      this.#header = Buffer.concat([this.#header, chunk.subarray(at)]);
      return chunk.length;
    }
    const whole = this.#header.length === 0;
    const header = whole ? chunk : Buffer.concat([this.#header, chunk.subarray(at, at + missing)]);
    const from = whole ? at : 0;
    this.#type = header[from] as number;
    this.#rest = frameLength(this.#type, header.readUInt32LE(from + 1));
    this.#header = empty;
    this.#inPayload = true;
    return at + missing;
  }

  #takePayload(data: Buffer): void {
    this.#rest -= data.length;
    if (isStream(this.#type)) {
      if (this.#rest === 0) this.#inPayload = false;
      this.#sink.stream(this.#type, data);
    } else if (this.#rest > 0) this.#parts.push(data);
    else this.#finish(data);
  }

  #finish(last: Buffer): void {
    const payload = this.#parts.length === 0 ? last : Buffer.concat([...this.#parts, last]);
    this.#parts = [];
    this.#inPayload = false;
    // An empty stream frame carries nothing.
    if (!isStream(this.#type)) this.#sink.frame(this.#type, payload);
  }
}

const empty: Buffer = Buffer.alloc(0);
