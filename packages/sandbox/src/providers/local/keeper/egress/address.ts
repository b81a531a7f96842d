import { isIPv4, isIPv6 } from "node:net";

/** An address as a number, so that no two spellings of it can be told apart. */
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
  if (isIPv4(text)) return { family: 4, value: quadValue(text) };
  if (!isIPv6(text) || text.includes("%")) return undefined;
  const address: Address = { family: 6, value: groupsValue(text) };
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

/** The IPv4 address that a translator or tunnel on the way makes of this IPv6 address. */
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

function quadValue(text: string): bigint {
  return text.split(".").reduce((value, octet) => (value << 8n) | BigInt(octet), 0n);
}

function groupsValue(text: string): bigint {
  const hexOnly = text.replace(/[\d.]+$/, (tail) => {
    if (!tail.includes(".")) return tail;
    const value = quadValue(tail);
    return `${(value >> 16n).toString(16)}:${(value & 0xffffn).toString(16)}`;
  });
  const [left = [], right = []] = hexOnly.split("::").map((side) => (side === "" ? [] : side.split(":")));
  const zeros = Array<string>(8 - left.length - right.length).fill("0");
  return [...left, ...zeros, ...right].reduce((value, group) => (value << 16n) | BigInt(`0x${group}`), 0n);
}
