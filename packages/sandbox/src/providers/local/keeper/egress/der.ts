/** Writes the DER of certificates. node:crypto reads them. */
type Der = Buffer;

export const sequence = (...parts: Der[]): Der => element(0x30, ...parts);

export const set = (...parts: Der[]): Der => element(0x31, ...parts);

/** [n] around whole elements. */
export const explicit = (tag: number, ...parts: Der[]): Der => element(0xa0 | tag, ...parts);

/** [n] in place of a primitive element's own tag. */
export const implicit = (tag: number, content: Buffer): Der => element(0x80 | tag, content);

export function integer(value: number | Buffer): Der {
  const bytes = typeof value === "number" ? Buffer.from([value]) : value;
  const isNegative = ((bytes[0] ?? 0) & 0x80) !== 0;
  return element(0x02, isNegative ? Buffer.concat([Buffer.from([0]), bytes]) : bytes);
}

export const isTrue: Der = Buffer.from([0x01, 0x01, 0xff]);

export const bitString = (content: Buffer, unusedBits = 0): Der => element(0x03, Buffer.from([unusedBits]), content);

export const octetString = (content: Buffer): Der => element(0x04, content);

export const utf8String = (text: string): Der => element(0x0c, Buffer.from(text, "utf8"));

export function objectIdentifier(dotted: string): Der {
  const [first = 0, second = 0, ...rest] = dotted.split(".").map(Number);
  return element(0x06, Buffer.from([first * 40 + second, ...rest.flatMap(base128)]));
}

/** GeneralizedTime from 2050 on, UTCTime before, as RFC 5280 demands. */
export function time(at: Date): Der {
  const digits = at.toISOString().replaceAll(/[-:T]|\.\d+/g, "");
  const isLate = at.getUTCFullYear() >= 2050;
  return element(isLate ? 0x18 : 0x17, Buffer.from(isLate ? digits : digits.slice(2), "latin1"));
}

function element(tag: number, ...contents: Buffer[]): Der {
  const content = Buffer.concat(contents);
  return Buffer.concat([Buffer.from([tag]), lengthOf(content), content]);
}

function lengthOf({ length }: Buffer): Buffer {
  if (length < 0x80) return Buffer.from([length]);
  if (length < 0x100) return Buffer.from([0x81, length]);
  return Buffer.from([0x82, length >> 8, length & 0xff]);
}

function base128(value: number): number[] {
  const groups = [value & 0x7f];
  for (let rest = value >> 7; rest > 0; rest >>= 7) groups.unshift((rest & 0x7f) | 0x80);
  return groups;
}
