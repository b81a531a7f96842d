import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { encodeFrame, encodeRequest, FrameDecoder, frameType, MalformedFrame, maxFrameBytes } from "./wire.ts";

function decodeIn(pieces: Buffer[]): { streams: Record<number, Buffer>; frames: [number, string][] } {
  const streams: Record<number, Buffer> = {};
  const frames: [number, string][] = [];
  const decoder = new FrameDecoder({
    stream(type, data) {
      streams[type] = Buffer.concat([streams[type] ?? Buffer.alloc(0), data]);
    },
    frame: (type, payload) => void frames.push([type, payload.toString("hex")]),
  });
  for (const piece of pieces) decoder.push(piece);
  return { streams, frames };
}

describe("frames", () => {
  it("decode to the same whatever pieces they arrive in", () => {
    const type = fc.constantFrom(frameType.stdout, frameType.stderr, frameType.done, frameType.entry, frameType.exit);
    fc.assert(
      fc.property(fc.array(fc.tuple(type, fc.uint8Array({ maxLength: 40 }))), fc.array(fc.nat(200)), (frames, cuts) => {
        const bytes = Buffer.concat(frames.map(([kind, payload]) => encodeFrame(kind, payload)));
        const ends = [...cuts.map((cut) => Math.min(cut, bytes.length)), bytes.length].sort((a, b) => a - b);
        const pieces = ends.map((end, index) => bytes.subarray(index === 0 ? 0 : ends[index - 1], end));
        expect(decodeIn(pieces)).toEqual(decodeIn([bytes]));
        const whole = decodeIn([bytes]).frames;
        expect(whole).toEqual(
          frames
            .filter(([kind]) => !isOutput(kind))
            .map(([kind, payload]) => [kind, Buffer.from(payload).toString("hex")]),
        );
      }),
    );
  });

  it("above the limit are refused", () => {
    const header = Buffer.from([frameType.done, 0, 0, 0, 0]);
    header.writeUInt32LE(maxFrameBytes + 1, 1);
    expect(() => decodeIn([header])).toThrow(MalformedFrame);
    expect(() => encodeFrame(frameType.bytes, Buffer.alloc(maxFrameBytes + 1))).toThrow(RangeError);
  });
});

describe("a request", () => {
  it("has its length, its operation and its fields", () => {
    expect(encodeRequest("X", { a: ["hé", "b"], s: "", t: undefined }).toString("latin1")).toBe(
      "\x0b\0\0\0Xah\xc3\xa9\0ab\0s\0",
    );
  });

  it("above two MiB is refused", () => {
    expect(() => encodeRequest("X", { a: "x".repeat(2 * 1024 * 1024) })).toThrow(RangeError);
  });
});

function isOutput(type: number): boolean {
  return type === frameType.stdout || type === frameType.stderr;
}
