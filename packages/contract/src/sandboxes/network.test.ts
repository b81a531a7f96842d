import { expect, test } from "vitest";
import { networkPolicySchema } from "./network.ts";

test("nothing is reached unless named", () => {
  expect(networkPolicySchema.parse(undefined)).toEqual({
    domains: [],
    cidrs: [],
    ports: [80, 443],
    registries: false,
    secrets: [],
    forwards: [],
  });
});

test("names are compared in lower case", () => {
  expect(networkPolicySchema.parse({ domains: ["API.Example.com", "*.Example.com"] }).domains).toEqual([
    "api.example.com",
    "*.example.com",
  ]);
});

const secret = { host: "api.example.com", header: "authorization", value: "Bearer x" };

test.each([
  [
    "domains",
    [
      "",
      "exa mple.com",
      "-a.com",
      "a-.com",
      "a..com",
      "*.*.com",
      "*",
      "https://a.com",
      "a.com/path",
      "a.com:80",
      "127.0.0.1",
      "1.2.3",
      `${"a".repeat(64)}.com`,
    ],
  ],
  ["cidrs", ["10.0.0.0/33", "10.0.0.0", "10.0.0/8", "::1", "::/129", "a.com", ""]],
  ["ports", [0, 65536, 1.5, "80"]],
  [
    "secrets",
    [
      { ...secret, host: "*.example.com" },
      { ...secret, header: "a b" },
      { ...secret, header: "a\r\nb" },
      { ...secret, header: "Content-Length" },
      { ...secret, value: "a\r\nb" },
      { ...secret, value: "" },
      { ...secret, scheme: "ftp" },
      { ...secret, extra: 1 },
    ],
  ],
  ["forwards", [{ port: 0, to: "a:1" }, { port: 1, to: "a" }, { port: 1, to: "a b:1" }, { port: 1 }]],
])("%s refuses each of its mistakes", (field, values) => {
  for (const value of values)
    expect([value, networkPolicySchema.safeParse({ [field]: [value] }).success]).toEqual([value, false]);
});

test.each([
  ["domains", ["localhost", "example.com", "*.example.com", "xn--bcher-kva.example"]],
  ["cidrs", ["0.0.0.0/0", "192.0.2.7/32", "2001:db8::/32", "::1/128"]],
  ["secrets", [secret, { ...secret, scheme: "https" }, { ...secret, scheme: "http" }]],
  ["forwards", [{ port: 5432, to: "db.example.com:5432" }]],
])("%s takes what is right", (field, values) => {
  for (const value of values)
    expect([value, networkPolicySchema.safeParse({ [field]: [value] }).success]).toEqual([value, true]);
});
