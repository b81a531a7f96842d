import { type BridgeTopic, newId, type OutgoingMessage } from "@slipway/contract";
import { type CandidateRecord, lockIntent, maxPage, type ReadRange, type RecordPage } from "@slipway/engine";
import { expect, test, vi } from "vitest";
import { generatedIntent } from "../../../simulated/generated.ts";
import { createShared, type SharedOptions, type SharedPart } from "./shared.ts";

const build = newId("bld");

function open(
  candidates: readonly Partial<CandidateRecord>[],
  messages: readonly OutgoingMessage[] = [],
  more: Readonly<Record<string, readonly unknown[]>> = {},
) {
  const told: SharedPart[] = [];
  const read = new Map<string, number>();
  const published: OutgoingMessage[] = [];
  const publishing = gate();
  const records: Readonly<Record<string, readonly unknown[]>> = {
    candidates,
    plans: [],
    tasks: [],
    intents: [],
    gateResults: [],
    ...more,
  };
  const known = [{ signature: "no socks", error: "no socks", fix: "--- a\n+++ b" }];
  const shared = createShared({
    build,
    scope: "ada/shop",
    store: {
      builds: {
        records: async (_: unknown, kind: string, { offset = 0, limit = maxPage, isReversed }: RecordPage = {}) => {
          const all = (isReversed ? records[kind]?.toReversed() : records[kind]) ?? [];
          const page = all.slice(offset, offset + limit);
          read.set(kind, (read.get(kind) ?? 0) + page.length);
          return page;
        },
      },
      patterns: {
        find: async (scope: string, errors: readonly string[]) =>
          scope === "ada/shop" ? known.filter(({ signature }) => errors.includes(signature)) : [],
      },
    },
    bridge: {
      async publish(_: unknown, message: OutgoingMessage) {
        await publishing.passed();
        published.push(message);
      },
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
    gatherMs: { merges: 1, errors: 1, plan: 1, features: 1, verifications: 1, fixes: 1, discoveries: 1 },
  } as unknown as SharedOptions);
  const payloads = (topic: BridgeTopic) =>
    published.filter((message) => message.topic === topic).map(({ payload }) => payload);
  return { shared, told, payloads, read, publishing };
}

/** Passed at once, unless it is held. */
function gate() {
  let [begun, gone] = [Promise.withResolvers<void>(), Promise.resolve()];
  return {
    hold() {
      const { promise, resolve } = Promise.withResolvers<void>();
      [begun, gone] = [Promise.withResolvers<void>(), promise];
      return { begun: begun.promise, goOn: resolve };
    },
    async passed() {
      begun.resolve();
      await gone;
    },
  };
}

test("attempts learn what waits to be merged and what was returned, and the bridge has it once", async () => {
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

test("its end waits for messages under way, and none follow", async () => {
  const candidate = { id: newId("cnd"), createdAt: 1, task: "list", status: "verifying", reason: null } as const;
  const { shared, payloads, publishing } = open([candidate]);
  const { begun, goOn } = publishing.hold();
  shared.changed("merges");
  await begun;
  const ending = shared[Symbol.asyncDispose]();
  shared.changed("plan");
  goOn();
  await ending;
  expect(payloads("merge")).toHaveLength(1);
  expect(payloads("context")).toEqual([]);
});

test("all that waits to be merged is shared, however many were offered before", async () => {
  const before = Array.from({ length: maxPage }, (_, index) => ({
    id: newId("cnd"),
    createdAt: index,
    task: "cart",
    status: "merged" as const,
    reason: null,
  }));
  const last = { id: newId("cnd"), createdAt: maxPage, task: "pay", status: "verifying" as const, reason: null };
  const { shared } = open([...before, last]);
  expect(await shared.parts()).toEqual([{ name: "merges", text: "- pay: verifying" }]);
});

test("of many verdicts the last sixty are shared, those on the newest candidates", async () => {
  const ids = Array.from({ length: maxPage + 1 }, (_, index) => newId("cnd", index));
  const candidates = ids.map((id, index) => ({
    id,
    createdAt: index,
    task: `task-${index}`,
    status: "merged" as const,
  }));
  const gateResults = ids.map((candidate, index) => ({
    candidate,
    gate: "tests",
    verdict: "passed",
    findings: [],
    endedAt: index,
  }));
  const { shared, read } = open(candidates, [], { gateResults });
  const parts = await shared.parts();
  const lines = parts.find(({ name }) => name === "verifications")?.text.split("\n");
  expect(lines).toHaveLength(60);
  expect(read.get("gateResults")).toBe(300);
  expect(lines?.at(-1)).toBe(`- task-${maxPage}, tests: passed`);
});

test("attempts learn how others failed", async () => {
  const payload = { title: "cart-1 has failed", text: "npm run test ended with 1\nexpected 3, got 2" };
  const { shared, told } = open([], [{ topic: "errors", key: "one", from: "cart-1", payload }]);
  shared.changed("errors", "cart-1");
  const text = "- cart-1: cart-1 has failed\n  npm run test ended with 1\n  expected 3, got 2";
  await vi.waitFor(() => expect(told).toEqual([{ name: "errors", text }]));
  expect(await shared.parts()).toEqual([{ name: "errors", text }]);
});

test("the shared context has the intent, rules, design, features, verdicts, known fixes and decisions", async () => {
  const locked = await lockIntent(generatedIntent({ request: "A packing list" }), 0);
  const task = (id: string, features: readonly string[]) => ({ id, title: id, component: "frontend", features });
  const failed = { endedAt: 2, gate: "tests", verdict: "failed", findings: [{ text: "expected 3\nat line 1" }] };
  const cart = newId("cnd");
  const { shared, payloads } = open(
    [{ id: cart, createdAt: 1, task: "cart", status: "rejected", reason: "tests" }],
    [{ topic: "discoveries", key: "one", from: "cart-1", payload: { title: "Lists are plain text", text: "" } }],
    {
      intents: [{ intent: JSON.parse(JSON.stringify({ locked })) }],
      plans: [{ tasks: [task("cart", ["shop"]), task("pay", ["shop", "money"]), task("list", ["list"])] }],
      tasks: [
        { id: "cart", status: "merged", details: { failures: [{ error: "no socks" }] } },
        { id: "list", status: "merged", details: {} },
      ],
      gateResults: [
        { ...failed, candidate: cart },
        { ...failed, candidate: cart, endedAt: 1, gate: "build", verdict: "passed", findings: [] },
      ],
    },
  );
  await shared.parts();
  for (const part of ["plan", "merges", "errors", "discoveries"] as const) shared.changed(part);
  const sections = () =>
    Object.fromEntries(
      payloads("context").map((payload) => {
        const { section, value } = payload as { readonly section: string; readonly value: string };
        return [section, value];
      }),
    );
  await vi.waitFor(() =>
    expect(sections()).toMatchObject({
      intent: expect.stringContaining("A packing list"),
      rules: expect.stringContaining(`- not: ${locked.intent.antiPatterns[0]}`),
      preferences: expect.stringContaining(locked.intent.identity.mood),
      features: [
        "- shop: in work, 1 of 2 tasks merged",
        "- money: open, 0 of 1 tasks merged",
        "- list: done, 1 of 1 tasks merged",
      ].join("\n"),
      verifications: "- cart, build: passed\n- cart, tests: failed: expected 3",
      fixes: "- no socks\n  fixed by:\n  --- a\n  +++ b",
      decisions: "- cart-1: Lists are plain text",
    }),
  );
});
