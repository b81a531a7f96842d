/** Requests and frames as native/PROTOCOL.md has them. */

export const maxFrameBytes = 256 * 1024;
const maxRequestBytes = 2 * 1024 * 1024;
export const frameHeaderBytes = 5;
export const exitPayloadBytes = 33;
/** How much of a stream goes into one frame from here: the agent's own unit, well below the limit. */
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

export type Field = readonly [key: string, value: string | Uint8Array];

/** Fields hold anything but NUL; whoever builds them from a caller's words has checked that. */
export function encodeRequest(operation: string, fields: readonly Field[]): Buffer {
  let length = 1;
  for (const [, value] of fields) length += 2 + (typeof value === "string" ? Buffer.byteLength(value) : value.length);
  if (length > maxRequestBytes) throw new RangeError(`a request of ${length} bytes is above ${maxRequestBytes}`);
  const request = Buffer.allocUnsafe(4 + length);
  request.writeUInt32LE(length, 0);
  let at = 4 + request.write(operation, 4, 1, "latin1");
  for (const [key, value] of fields) {
    at += request.write(key, at, 1, "latin1");
    if (typeof value === "string") at += request.write(value, at);
    else {
      request.set(value, at);
      at += value.length;
    }
    request[at++] = 0;
  }
  return request;
}

export function encodeFrame(type: number, payload: Uint8Array = empty): Buffer {
  const frame = Buffer.allocUnsafe(frameHeaderBytes + payload.length);
  writeHeader(frame, type, payload.length);
  frame.set(payload, frameHeaderBytes);
  return frame;
}

export function encodeHeader(type: number, length: number): Buffer {
  const header = Buffer.allocUnsafe(frameHeaderBytes);
  writeHeader(header, type, length);
  return header;
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

/** What a decoder tells. Bytes of streams come as they arrive, in parts; every other frame comes whole. */
export interface FrameSink {
  stream(type: number, data: Buffer): void;
  frame(type: number, payload: Buffer): void;
}

export interface FrameDecoder {
  push(chunk: Buffer): void;
}

export class MalformedFrame extends Error {
  override readonly name = "MalformedFrame";
}

export function isStream(type: number): boolean {
  return type === frameType.stdout || type === frameType.stderr || type === frameType.data;
}

/** The checked length of a frame. The start of a log names the arguments and may be as long as their request. */
export function frameLength(type: number, length: number): number {
  if (length > (type === frameType.start ? maxRequestBytes : maxFrameBytes))
    throw new MalformedFrame(`a frame of ${length} bytes`);
  return length;
}

export function createFrameDecoder(sink: FrameSink): FrameDecoder {
  return new Decoder(sink);
}

class Decoder implements FrameDecoder {
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

function writeHeader(target: Buffer, type: number, length: number): void {
  if (length > maxFrameBytes) throw new RangeError(`a frame of ${length} bytes is above ${maxFrameBytes}`);
  target[0] = type;
  target.writeUInt32LE(length, 1);
}
