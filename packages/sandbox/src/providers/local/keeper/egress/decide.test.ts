import { BlockList, isIP } from "node:net";
import type { NetworkPolicyInput } from "@slipway/contract";
import { networkPolicySchema } from "@slipway/contract";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { contains, formatAddress, parseAddress, parseRange } from "./address.ts";
import { decide, decideHost } from "./decide.ts";
import { compileRules, type Destination } from "./rules.ts";

const publicAddress = "93.184.216.34";

function verdict(policy: NetworkPolicyInput, host: string, port = 443, resolved: string[] = [publicAddress]) {
  const decision = decide(compileRules(networkPolicySchema.parse(policy)), { host, port }, resolved);
  return decision.verdict === "dial" ? decision.addresses.join(" ") : decision.rule;
}

describe("names", () => {
  test.each([
    [["example.com"], "example.com", publicAddress],
    [["example.com"], "EXAMPLE.com.", publicAddress],
    [["example.com"], "www.example.com", "not_allowed"],
    [["example.com"], "notexample.com", "not_allowed"],
    [["*.example.com"], "a.example.com", publicAddress],
    [["*.example.com"], "a.b.example.com", publicAddress],
    [["*.example.com"], "example.com", "not_allowed"],
    [["*.example.com"], "notexample.com", "not_allowed"],
    [["*.example.com"], "example.com.evil.net", "not_allowed"],
    [["xn--bcher-kva.example"], "xn--bcher-kva.example", publicAddress],
    [[], "example.com", "not_allowed"],
  ])("with %j allowed, %s is %s", (domains, host, expected) => {
    expect(verdict({ domains }, host)).toBe(expected);
  });

  test("an allowed name on another port is refused by port", () => {
    expect(verdict({ domains: ["example.com"] }, "example.com", 22)).toBe("port");
    expect(verdict({ domains: ["example.com"], ports: [22] }, "example.com", 22)).toBe(publicAddress);
  });

  test("a name that is not allowed needs no lookup to be refused", () => {
    const rules = compileRules(networkPolicySchema.parse({ domains: ["example.com"], cidrs: ["0.0.0.0/0"] }));
    expect(decideHost(rules, { host: "secret.evil.net", port: 443 })).toEqual({
      verdict: "refuse",
      rule: "not_allowed",
    });
    expect(decideHost(rules, { host: "example.com", port: 22 })).toEqual({ verdict: "refuse", rule: "port" });
  });

  test("an allowed name without an address is unresolved", () => {
    expect(verdict({ domains: ["example.com"] }, "example.com", 443, [])).toBe("unresolved");
  });

  test("of an allowed name's addresses only the public ones are dialled", () => {
    const mixed = ["10.0.0.1", publicAddress, "::1", "2606:4700::1111"];
    expect(verdict({ domains: ["example.com"] }, "example.com", 443, mixed)).toBe(
      `${publicAddress} 2606:4700:0:0:0:0:0:1111`,
    );
    expect(verdict({ domains: ["example.com"] }, "example.com", 443, ["10.0.0.1", "127.0.0.1"])).toBe(
      "private_address",
    );
    expect(verdict({ domains: ["example.com"], cidrs: ["10.0.0.0/8"] }, "example.com", 443, ["10.0.0.1"])).toBe(
      "10.0.0.1",
    );
  });
});

const malformed = [
  ...["127.1", "127.0.1", "2130706433", "0x7f000001", "0x7f.1", "0x7f.0.0.1", "0177.0.0.1", "0177.1", "017700000001"],
  ...["127.0.0.01", "127.0.0.0x1", "1.2.3.256", "1.2.3.4.5", "127.0.0.1.", "127.0.0.1%00", "example.0x1", "example.1"],
  ...[
    "fe80::1%eth0",
    "::1%1",
    "[fe80::1%25eth0]",
    "[127.0.0.1]",
    "[::1",
    "::1]",
    "[[::1]]",
    "[]",
    "[example.com]",
    "1::2::3",
  ],
  ...[
    "",
    ".",
    "..",
    ".example.com",
    "example..com",
    "example.com..",
    "-a.example",
    "a-.example",
    "*.example.com",
    "a_b.example",
  ],
  ...[
    "ex ample.com",
    "example.com\0",
    "example.com\n",
    "user@example.com",
    "example.com/",
    "example.com:80",
    "127.0.0.1:80",
  ],
  ...[
    "bücher.example",
    "ⓔxample.com",
    "１２７.0.0.1",
    "127。0。0。1",
    "xn--\u00fc.example",
    "xn--a.example",
    "xn--0.example",
  ],
  ...[`${"a".repeat(64)}.example`, `${"a.".repeat(127)}aa`, "%31%32%37.0.0.1"],
];

test.each(malformed)("%j is malformed, whatever the policy", (host) => {
  const policy = {
    domains: ["*.example", "*.com", "example.com"],
    cidrs: ["0.0.0.0/0", "127.0.0.0/8", "::/0", "::1/128", "fe80::/10"],
  };
  expect(verdict(policy, host)).toBe("malformed");
});

const special = [
  ...[
    "0.0.0.0",
    "0.1.2.3",
    "10.0.0.1",
    "100.64.0.1",
    "100.100.100.200",
    "127.0.0.1",
    "127.255.255.255",
    "169.254.169.254",
  ],
  ...[
    "168.63.129.16",
    "172.16.0.1",
    "172.31.255.255",
    "192.0.0.192",
    "192.0.2.1",
    "192.88.99.1",
    "192.168.1.1",
    "198.18.0.1",
  ],
  ...["198.51.100.1", "203.0.113.1", "224.0.0.1", "239.255.255.255", "240.0.0.1", "255.255.255.255"],
  ...["::", "::1", "[::1]", "0:0:0:0:0:0:0:1", "::127.0.0.1", "::ffff:127.0.0.1", "::ffff:7f00:1", "::FFFF:10.0.0.1"],
  ...[
    "64:ff9b::127.0.0.1",
    "64:ff9b::a9fe:a9fe",
    "64:ff9b:1::1",
    "2002:7f00:1::",
    "2002:a00:1::1",
    "2001::1",
    "2001:db8::1",
  ],
  ...[
    "3fff::1",
    "fe80::1",
    "fec0::1",
    "fc00::1",
    "fd00:ec2::254",
    "ff02::1",
    "100::1",
    "5f00::1",
    "::ffff:0:127.0.0.1",
    "4000::1",
  ],
];

describe("addresses", () => {
  test.each(special)("%s is private, even to a policy with every public range", (host) => {
    expect(verdict({ cidrs: ["0.0.0.0/0", "::/0"] }, host)).toBe("private_address");
    expect(verdict({}, host)).toBe("private_address");
  });

  test.each(special)("a name that resolves to %s is private", (host) => {
    const address = host.replaceAll(/[[\]]/g, "");
    expect(verdict({ domains: ["example.com"], cidrs: ["0.0.0.0/0", "::/0"] }, "example.com", 443, [address])).toBe(
      "private_address",
    );
  });

  test.each([
    ["127.0.0.1/32", "127.0.0.1", "127.0.0.1"],
    ["127.0.0.1/32", "127.0.0.2", "private_address"],
    ["127.0.0.1/32", "::ffff:127.0.0.1", "127.0.0.1"],
    ["::ffff:127.0.0.0/104", "127.0.0.1", "127.0.0.1"],
    ["::1/128", "[::1]", "0:0:0:0:0:0:0:1"],
    ["::1/128", "127.0.0.1", "private_address"],
    ["10.0.0.0/8", "10.9.8.7", "10.9.8.7"],
    ["169.254.169.254/32", "169.254.169.254", "169.254.169.254"],
    ["64:ff9b::/96", "64:ff9b::10.0.0.1", "private_address"],
    ["2002::/16", "2002:a00:1::", "private_address"],
    ["93.184.216.0/24", publicAddress, publicAddress],
    ["2606:4700::/32", "2606:4700::1111", "2606:4700:0:0:0:0:0:1111"],
    ["0.0.0.0/0", publicAddress, publicAddress],
    ["::/0", publicAddress, "not_allowed"],
    ["::/0", "64:ff9b::93.184.216.34", "64:ff9b:0:0:0:0:5db8:d822"],
    ["8.8.8.0/24", publicAddress, "not_allowed"],
  ])("with %s, %s is %s", (cidr, host, expected) => {
    expect(verdict({ cidrs: [cidr] }, host)).toBe(expected);
  });

  test("a literal address on another port is refused by port", () => {
    expect(verdict({ cidrs: ["127.0.0.1/32"] }, "127.0.0.1", 22)).toBe("port");
  });

  test("the host's own public address is private unless it is named alone", () => {
    const decideOwn = (cidrs: string[]) => {
      const rules = compileRules(networkPolicySchema.parse({ domains: ["example.com"], cidrs }));
      return decide(rules, { host: "example.com", port: 443 }, [publicAddress], [publicAddress]).verdict;
    };
    expect(decideOwn(["0.0.0.0/0"])).toBe("refuse");
    expect(decideOwn([`${publicAddress}/32`])).toBe("dial");
  });
});

describe("destinations", () => {
  test("a forward allows its host and port only, and opens no private address", () => {
    const policy = { forwards: [{ port: 5432, to: "db.example.com:5432" }] };
    expect(verdict(policy, "db.example.com", 5432)).toBe(publicAddress);
    expect(verdict(policy, "db.example.com", 443)).toBe("not_allowed");
    expect(verdict(policy, "db.example.com", 5432, ["10.0.0.1"])).toBe("private_address");
    expect(verdict({ forwards: [{ port: 1, to: "127.0.0.1:22" }] }, "127.0.0.1", 22)).toBe("private_address");
  });

  test("the host of a secret is allowed on 443, and on 80 when it is one for http", () => {
    const secret = { host: "api.example.com", header: "authorization", value: "x" };
    const policy = {
      ports: [8443],
      secrets: [secret, { ...secret, host: "plain.example.com", scheme: "http" as const }],
    };
    expect(verdict(policy, "api.example.com", 443)).toBe(publicAddress);
    expect(verdict(policy, "plain.example.com", 80)).toBe(publicAddress);
    for (const port of [80, 8443]) expect(verdict(policy, "api.example.com", port)).toBe("not_allowed");
    for (const port of [443, 8443]) expect(verdict(policy, "plain.example.com", port)).toBe("not_allowed");
  });

  test("a registry counts only while the policy says so, and may be private where the host's settings name it", () => {
    const registries: Destination[] = [{ host: "npm.corp.example", port: 4873, allowPrivate: true }];
    const ask = (policy: NetworkPolicyInput, address: string) =>
      decide(compileRules(networkPolicySchema.parse(policy), registries), { host: "npm.corp.example", port: 4873 }, [
        address,
      ]);
    expect(ask({}, "10.0.0.1")).toEqual({ verdict: "refuse", rule: "not_allowed" });
    expect(ask({ registries: true }, "10.0.0.1").verdict).toBe("dial");
    expect(ask({ registries: true }, "127.0.0.1").verdict).toBe("dial");
    expect(ask({ registries: true }, "198.18.0.1").verdict).toBe("dial");
    expect(ask({ domains: ["npm.corp.example"], ports: [4873] }, "198.18.0.1").verdict).toBe("refuse");
    expect(ask({ registries: true }, "169.254.169.254")).toEqual({ verdict: "refuse", rule: "private_address" });
  });
});

const ipv4 = fc.tuple(fc.nat(255), fc.nat(255), fc.nat(255), fc.nat(255));
const privateIPv4 = fc.oneof(
  fc.tuple(fc.constantFrom(0, 10, 127), fc.nat(255), fc.nat(255), fc.nat(255)),
  fc.tuple(fc.constant(169), fc.constant(254), fc.nat(255), fc.nat(255)),
  fc.tuple(fc.constant(192), fc.constant(168), fc.nat(255), fc.nat(255)),
  fc.tuple(fc.constant(172), fc.integer({ min: 16, max: 31 }), fc.nat(255), fc.nat(255)),
  fc.tuple(fc.constant(100), fc.integer({ min: 64, max: 127 }), fc.nat(255), fc.nat(255)),
);

type Quad = readonly [number, number, number, number];
const hex = (value: number) => value.toString(16);
const number = ([a, b, c, d]: Quad) => ((a * 256 + b) * 256 + c) * 256 + d;
const groups = ([a, b, c, d]: Quad) => `${hex(a * 256 + b)}:${hex(c * 256 + d)}`;
const spellings: ((quad: Quad) => string)[] = [
  (quad) => quad.join("."),
  (quad) => `${quad.join(".")}.`,
  (quad) => String(number(quad)),
  (quad) => `0x${hex(number(quad))}`,
  (quad) => `0${number(quad).toString(8)}`,
  (quad) => quad.map((octet) => `0x${hex(octet)}`).join("."),
  (quad) => quad.map((octet) => `0${octet.toString(8)}`).join("."),
  ([a, b, c, d]) => `${a}.${(b * 256 + c) * 256 + d}`,
  ([a, b, c, d]) => `0x${hex(a)}.${b}.${c * 256 + d}`,
  (quad) => `::ffff:${quad.join(".")}`,
  (quad) => `[::FFFF:${groups(quad)}]`,
  (quad) => `0:0:0:0:0:ffff:${groups(quad)}`,
  (quad) => `::${quad.join(".")}`,
  (quad) => `::ffff:0:${groups(quad)}`,
  (quad) => `64:ff9b::${groups(quad)}`,
  (quad) => `64:ff9b:1::${quad.join(".")}`,
  (quad) => `2002:${groups(quad)}::1`,
  (quad) => `2001::${groups(quad)}`,
  (quad) => `::ffff:${quad.join(".")}%1`,
];

describe("properties", () => {
  test("no spelling of a private address is allowed without its range", () => {
    const wide = {
      domains: ["*.com"],
      cidrs: ["0.0.0.0/0", "::/0", "2000::/3", "64:ff9b::/96", "2002::/16"],
      ports: [80, 443],
    };
    fc.assert(
      fc.property(privateIPv4, fc.constantFrom(...spellings), fc.constantFrom(80, 443), (quad, spell, port) => {
        expect(["private_address", "malformed"]).toContain(verdict(wide, spell(quad), port));
        expect(verdict(wide, "a.com", port, [spell(quad)])).toMatch(/^(private_address|unresolved)$/);
      }),
      { numRuns: 2000 },
    );
  });

  test("what is dialled for a literal is that literal, and lies in a range of the policy", () => {
    fc.assert(
      fc.property(fc.oneof(fc.ipV4(), fc.ipV6()), fc.ipV4(), fc.nat(32), (host, base, prefix) => {
        const cidrs = [`${base}/${prefix}`];
        const result = verdict({ cidrs }, host);
        if (/^[a-z_]+$/.test(result)) return;
        const range = parseRange(cidrs[0] ?? "");
        const address = parseAddress(result);
        expect(address).toEqual(parseAddress(host));
        expect(range && address && contains(range, address)).toBe(true);
      }),
      { numRuns: 2000 },
    );
  });

  test("arbitrary text is never taken for an address other than a canonical one", () => {
    fc.assert(
      fc.property(fc.oneof(fc.string(), fc.string({ unit: fc.constantFrom(..."0123456789abcdefx.:[]%") })), (host) => {
        const result = verdict({ domains: ["*.com"], cidrs: ["0.0.0.0/0", "127.0.0.0/8"] }, host);
        if (/^\d+\.\d+\.\d+\.\d+$/.test(result)) expect(formatAddress(parseAddress(host) ?? fail(host))).toBe(result);
      }),
      { numRuns: 3000 },
    );
  });

  test("what is an address agrees with node:net, but for zones", () => {
    const nearly = fc.oneof(
      fc.ipV4(),
      fc.ipV6(),
      fc.ipV4Extended(),
      fc.string({ unit: fc.constantFrom(..."0129afF.:") }),
    );
    const spliced = fc.tuple(nearly, nearly, fc.nat(40), fc.nat(40)).map(([a, b, i, j]) => a.slice(0, i) + b.slice(j));
    fc.assert(
      fc.property(fc.oneof(nearly, spliced), (text) => {
        expect(parseAddress(text) !== undefined).toBe(isIP(text) !== 0);
        const address = parseAddress(text);
        if (address) expect(parseAddress(formatAddress(address))).toEqual(address);
      }),
      { numRuns: 5000 },
    );
  });

  test("ranges agree with node:net's BlockList", () => {
    fc.assert(
      fc.property(
        ipv4,
        ipv4,
        fc.nat(32),
        fc.ipV6(),
        fc.ipV6(),
        fc.nat(128),
        (address, base, prefix, address6, base6, prefix6) => {
          expect(inRange(address.join("."), base.join("."), prefix)).toBe(
            inBlockList("ipv4", address.join("."), base.join("."), prefix),
          );
          if (parseAddress(address6)?.family !== 6 || parseAddress(base6)?.family !== 6) return;
          expect(inRange(address6, base6, prefix6)).toBe(inBlockList("ipv6", address6, base6, prefix6));
        },
      ),
    );
  });
});

function inRange(address: string, base: string, prefix: number): boolean {
  const range = parseRange(`${base}/${prefix}`);
  const parsed = parseAddress(address);
  return range !== undefined && parsed !== undefined && contains(range, parsed);
}

function inBlockList(family: "ipv4" | "ipv6", address: string, base: string, prefix: number): boolean {
  const list = new BlockList();
  list.addSubnet(base, prefix, family);
  return list.check(address, family);
}

function fail(host: string): never {
  throw new Error(`dialled for ${JSON.stringify(host)}`);
}
