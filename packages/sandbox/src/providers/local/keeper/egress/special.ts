import { type Address, contains, embeddedIPv4, parseRange, type Range } from "./address.ts";

/** Private networks: a user may keep a registry or a database there. */
const privateNetworks = ranges(
  "10.0.0.0/8",
  "172.16.0.0/12",
  "192.168.0.0/16",
  "100.64.0.0/10", // shared by carriers, also used by overlay networks
  "127.0.0.0/8",
  "::1/128",
  "fc00::/7",
  // Unused on the internet; some gateways use them.
  "192.0.2.0/24",
  "198.18.0.0/15",
  "198.51.100.0/24",
  "203.0.113.0/24",
);

/** Other ranges outside the public internet, from IANA's special-purpose registries. */
const otherSpecial = ranges(
  "0.0.0.0/8",
  "169.254.0.0/16", // link-local, and the metadata service of most clouds
  "168.63.129.16/32", // Azure's metadata service, in public space
  "192.0.0.0/24",
  "192.88.99.0/24",
  "224.0.0.0/4",
  "240.0.0.0/4",
  "2001::/23", // protocol assignments, Teredo among them
  "2001:db8::/32",
  "3fff::/20",
  "fe80::/10",
  "fec0::/10",
  "ff00::/8",
  "::/96",
  "64:ff9b:1::/48",
  "100::/64",
  "5f00::/16",
);

const specialRanges = [...privateNetworks, ...otherSpecial];
const globalUnicast = ranges("2000::/3");
/** Judged by the embedded IPv4 address. */
const translated = ranges("64:ff9b::/96");

export function isSpecial(address: Address): boolean {
  if (specialRanges.some((range) => contains(range, address))) return true;
  if (address.family === 4) return false;
  const embedded = embeddedIPv4(address);
  if (embedded !== undefined && isSpecial(embedded)) return true;
  return ![...globalUnicast, ...translated].some((range) => contains(range, address));
}

export function isPrivateNetwork(address: Address): boolean {
  return privateNetworks.some((range) => contains(range, address));
}

/** Whether the range names special addresses on purpose: 10.1.0.0/16 does, 0.0.0.0/0 means the internet. */
export function namesSpecial(range: Range): boolean {
  const isOneAddress = range.prefix === (range.family === 4 ? 32 : 128);
  return isOneAddress || specialRanges.some((special) => contains(special, range));
}

function ranges(...texts: string[]): readonly Range[] {
  return texts.map((text) => {
    const range = parseRange(text);
    if (range === undefined) throw new TypeError(`Invalid range: ${text}`);
    return range;
  });
}
