import { bridgeLimits, type OutgoingMessage } from "@slipway/contract";
import { describe, expect, test } from "vitest";
import { newBuild, progress, type Subject } from "./subject.ts";

const invalid = { code: "invalid_request" };

export function describeBadInput(subject: Subject): void {
  describe("bad input", () => {
    test.each(badMessages)("%s is refused, and nothing is published", async (_, change) => {
      const { bridge } = subject();
      const build = newBuild();
      const message = { ...progress("a"), ...change } as OutgoingMessage;
      await expect(bridge.publish(build, message)).rejects.toMatchObject(invalid);
      expect((await bridge.read(build, { after: 0 })).next).toBe(0);
    });

    test.each(badPaths)("the path %j is refused, and nothing is claimed", async (path) => {
      const { bridge } = subject();
      const build = newBuild();
      const request = { paths: ["good", path], owner: "one", leaseMs: 5000 };
      await expect(bridge.claim(build, request)).rejects.toMatchObject(invalid);
      await expect(bridge.renew(build, { path, token: 1, leaseMs: 5000 })).rejects.toMatchObject(invalid);
      await expect(bridge.release(build, { path, token: 1 })).rejects.toMatchObject(invalid);
      expect(await bridge.claims(build)).toEqual([]);
    });

    test("claims without an end, an owner or a path are refused", async () => {
      const { bridge } = subject();
      const good = { paths: ["a"], owner: "one", leaseMs: 5000 };
      const many = Array.from({ length: bridgeLimits.maxClaimPaths + 1 }, (_, n) => `${n}`);
      for (const bad of [
        { leaseMs: 0 },
        { leaseMs: Number.POSITIVE_INFINITY },
        { leaseMs: bridgeLimits.maxLeaseMs + 1 },
        { owner: "" },
        { owner: "two words" },
        { paths: [] },
        { paths: many },
      ]) {
        await expect(bridge.claim(newBuild(), { ...good, ...bad })).rejects.toMatchObject(invalid);
      }
    });

    test("ranges that make no sense are refused", async () => {
      const { bridge } = subject();
      const build = newBuild();
      for (const bad of [
        { after: -1 },
        { after: 0.5 },
        { after: Number.NaN },
        { after: 0, limit: 0 },
        { after: 0, limit: bridgeLimits.maxPageMessages + 1 },
        { after: 0, topics: [] },
      ]) {
        await expect(bridge.read(build, bad)).rejects.toMatchObject(invalid);
        if ("limit" in bad) continue;
        const { signal } = new AbortController();
        await expect(Array.fromAsync(bridge.subscribe(build, { ...bad, signal }))).rejects.toMatchObject(invalid);
      }
    });
  });
}

const badMessages: readonly [string, Readonly<Record<string, unknown>>][] = [
  ["an unknown topic", { topic: "gossip" }],
  ["another topic's payload", { topic: "merge" }],
  ["a key with a space", { key: "a b" }],
  ["a key without an end", { key: "k".repeat(257) }],
  ["a sender without a name", { from: "" }],
  ["no payload", { payload: undefined }],
  ["more than the topic has", { payload: { phase: "build", text: "", extra: 1 } }],
  ["too deep a payload", { payload: { phase: "build", text: "", detail: nested(10_000) } }],
  ["what is no JSON", { payload: { phase: "build", text: "", detail: { when: new Date(0) } } }],
  ["a number without an end", { payload: { phase: "build", text: "", detail: Number.NaN } }],
];

const badPaths = [
  "",
  "/etc/passwd",
  "../up",
  "a/../b",
  "a//b",
  "./a",
  "a/",
  "a\\b",
  "a\0b",
  "\ud800",
  "x".repeat(1025),
];

function nested(levels: number): unknown {
  let value: unknown = [];
  for (let level = 1; level < levels; level++) value = [value];
  return value;
}
