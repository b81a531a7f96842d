import { type BridgeTopic, newId, type OutgoingMessage } from "@slipway/contract";
import { type CandidateRecord, maxPage, type Page, type ReadRange } from "@slipway/engine";
import { expect, test, vi } from "vitest";
import { createShared, type SharedOptions, type SharedPart } from "./shared.ts";

const build = newId("bld");

function open(candidates: readonly Partial<CandidateRecord>[], messages: readonly OutgoingMessage[] = []) {
  const told: SharedPart[] = [];
  const published: OutgoingMessage[] = [];
  const records = { candidates, plans: [], tasks: [] };
  const shared = createShared({
    build,
    store: {
      builds: {
        records: async (_: unknown, kind: keyof typeof records, { offset = 0 }: Page = {}) =>
          records[kind].slice(offset, offset + maxPage),
      },
    },
    bridge: {
      publish: async (_: unknown, message: OutgoingMessage) => void published.push(message),
      claims: async () => [],
      read: async (_: unknown, { after, topics }: ReadRange) => ({
        messages: messages.slice(after).filter(({ topic }) => topics?.includes(topic)),
        next: messages.length,
      }),
    },
    repository: async () => ({ overlap: async () => [] }),
    open: () => new Map(),
    tell: (part: SharedPart) => told.push(part),
    warn: (error: Error) => expect.unreachable(error.message),
    gatherMs: { merges: 1, errors: 1 },
  } as unknown as SharedOptions);
  const payloads = (topic: BridgeTopic) =>
    published.filter((message) => message.topic === topic).map(({ payload }) => payload);
  return { shared, told, payloads };
}

test("attempts hear what waits to be merged and what was sent back, and the bridge has it once", async () => {
  const candidates = [
    { id: newId("cnd"), createdAt: 3, task: "list", status: "verifying", reason: null },
    { id: newId("cnd"), createdAt: 2, task: "pay", status: "rejected", reason: "tests" },
    { id: newId("cnd"), createdAt: 1, task: "cart", status: "rejected", reason: "build" },
    { id: newId("cnd"), createdAt: 4, task: "cart", status: "merged", reason: null },
  ] as const;
  const { shared, told, payloads } = open(candidates);
  shared.changed("merges");
  await vi.waitFor(() => expect(told).toHaveLength(1));
  expect(told).toEqual([{ name: "merges", text: "- pay: rejected (tests)\n- list: verifying" }]);
  await vi.waitFor(() =>
    expect(payloads("context")).toEqual([{ section: "merges", name: "merges", value: told[0]?.text }]),
  );
  const inOrder = candidates.toSorted((a, b) => a.createdAt - b.createdAt);
  expect(payloads("merge")).toMatchObject(inOrder.map(({ id, status }) => ({ candidate: id, status })));
  // What is looked at again is no news.
  expect((await shared.parts()).map(({ name }) => name)).toEqual(["merges"]);
  expect(payloads("merge")).toHaveLength(candidates.length);
});

test("what waits to be merged is told of however many were offered before", async () => {
  const before = Array.from({ length: maxPage }, (_, index) => ({
    ...{ id: newId("cnd"), createdAt: index, task: "cart", status: "merged" as const, reason: null },
  }));
  const last = { id: newId("cnd"), createdAt: maxPage, task: "pay", status: "verifying" as const, reason: null };
  const { shared } = open([...before, last]);
  expect(await shared.parts()).toEqual([{ name: "merges", text: "- pay: verifying" }]);
});

test("attempts hear how others have failed", async () => {
  const payload = { title: "cart-1 has failed", text: "npm run test ended with 1\nexpected 3, got 2" };
  const { shared, told } = open([], [{ topic: "errors", key: "one", from: "cart-1", payload }]);
  shared.changed("errors", "cart-1");
  const text = "- cart-1: cart-1 has failed\n  npm run test ended with 1\n  expected 3, got 2";
  await vi.waitFor(() => expect(told).toEqual([{ name: "errors", text }]));
  expect(await shared.parts()).toEqual([{ name: "errors", text }]);
});
