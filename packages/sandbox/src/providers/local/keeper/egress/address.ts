/** An address as a number, so that its spelling does not matter. */
export interface Address {
  readonly family: 4 | 6;
  readonly value: bigint;
}

export interface Range extends Address {
  readonly prefix: number;
}

const mapped: Range = { family: 6, value: 0xffff_0000_0000n, prefix: 96 };
const compatible: Range = { family: 6, value: 0n, prefix: 96 };
const nat64: Range = { family: 6, value: 0x64_ff9bn << 96n, prefix: 96 };
const sixToFour: Range = { family: 6, value: 0x2002n << 112n, prefix: 16 };

/**
 * Reads the canonical dotted quad or any RFC 4291 spelling without a zone, unbracketed; anything else is undefined.
 * An IPv4-mapped address is the IPv4 address: the kernel connects to it as such.
 */
export function parseAddress(text: string): Address | undefined {
  const quad = parseQuad(text);
  if (quad !== undefined) return { family: 4, value: quad };
  const value = parseGroups(text);
  if (value === undefined) return undefined;
  const address: Address = { family: 6, value };
  return contains(mapped, address) ? low32(address) : address;
}

export function parseRange(text: string): Range | undefined {
  const [base = "", prefixText = ""] = text.split("/");
  const address = parseAddress(base);
  if (address === undefined || !/^\d{1,3}$/.test(prefixText)) return undefined;
  const writtenBits = base.includes(":") ? 128 : 32;
  const prefix = Number(prefixText) - (writtenBits - bitsOf(address));
  if (prefix < 0 || prefix > bitsOf(address)) return undefined;
  return { ...address, prefix };
}

export function formatAddress({ family, value }: Address): string {
  if (family === 4) return [24n, 16n, 8n, 0n].map((shift) => (value >> shift) & 0xffn).join(".");
  const groups = Array.from({ length: 8 }, (_, i) => ((value >> BigInt(112 - 16 * i)) & 0xffffn).toString(16));
  return groups.join(":");
}

/** Whether all of `inner`, an address or a range, lies in `range`. The families never mix. */
export function contains(range: Range, inner: Address | Range): boolean {
  if (range.family !== inner.family) return false;
  if ("prefix" in inner && inner.prefix < range.prefix) return false;
  const shift = BigInt(bitsOf(range) - range.prefix);
  return range.value >> shift === inner.value >> shift;
}

/** The IPv4 address that translators or tunnels make of this IPv6 address. */
export function embeddedIPv4(address: Address): Address | undefined {
  if (contains(nat64, address)) return low32(address);
  if (contains(sixToFour, address)) return low32({ family: 6, value: address.value >> 80n });
  if (contains(compatible, address) && address.value > 1n) return low32(address);
  return undefined;
}

function bitsOf({ family }: Address): number {
  return family === 4 ? 32 : 128;
}

function low32({ value }: Address): Address {
  return { family: 4, value: value & 0xffff_ffffn };
}

function parseQuad(text: string): bigint | undefined {
  const octets = text.split(".");
  if (octets.length !== 4 || !octets.every((octet) => /^(0|[1-9]\d{0,2})$/.test(octet) && Number(octet) < 256))
    return undefined;
  return octets.reduce((value, octet) => (value << 8n) | BigInt(octet), 0n);
}

function parseGroups(text: string): bigint | undefined {
  const sides = text.split("::").map((side) => (side === "" ? [] : side.split(":")));
  const last = sides.at(-1)?.at(-1);
  if (last?.includes(".")) {
    const quad = parseQuad(last);
    if (quad === undefined) return undefined;
    sides.at(-1)?.splice(-1, 1, (quad >> 16n).toString(16), (quad & 0xffffn).toString(16));
  }
  const [left = [], right = []] = sides;
  const zeros = 8 - left.length - right.length;
  const isComplete = sides.length === 1 ? zeros === 0 : sides.length === 2 && zeros > 0;
  const groups = [...left, ...Array<string>(Math.max(zeros, 0)).fill("0"), ...right];
  if (!isComplete || !groups.every((group) => /^[0-9a-f]{1,4}$/i.test(group))) return undefined;
  return groups.reduce((value, group) => (value << 16n) | BigInt(`0x${group}`), 0n);
}
