import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { type Demand, shareSlots } from "./shares.ts";

function demand(build: string, user: string, more: Partial<Demand> = {}): Demand {
  return { build, user, priority: 0, startedAtMs: 0, held: 0, wanted: 10, ...more };
}

function share(slots: number, ...demands: Demand[]): Record<string, number> {
  return Object.fromEntries(shareSlots(demands, slots));
}

describe("slots of the fleet", () => {
  test.each<[string, Record<string, number>, Record<string, number>]>([
    [
      "users share equally, however many builds they have",
      share(12, demand("a1", "a"), demand("a2", "a"), demand("a3", "a"), demand("b1", "b")),
      { a1: 2, a2: 2, a3: 2, b1: 6 },
    ],
    [
      "what one does not want is the others'",
      share(12, demand("a", "a", { wanted: 2 }), demand("b", "b", { wanted: 20 })),
      { a: 2, b: 10 },
    ],
    [
      "a priority counts between builds of one user",
      share(12, demand("low", "a"), demand("high", "a", { priority: 1 }), demand("b", "b")),
      { low: 0, high: 6, b: 6 },
    ],
    ["what is held is not taken away", share(6, demand("a", "a", { held: 5 }), demand("b", "b")), { a: 5, b: 1 }],
    ["the older goes first", share(1, demand("a", "u", { startedAtMs: 9 }), demand("b", "u")), { a: 0, b: 1 }],
  ])("%s", (_, shared, expected) => {
    expect(shared).toEqual(expected);
  });

  test("none is granted twice, none stays free while a build wants it, and the order of demands has no effect", () => {
    const demands = fc.array(
      fc.record({
        user: fc.constantFrom("a", "b", "c"),
        priority: fc.integer({ min: 0, max: 2 }),
        startedAtMs: fc.nat(3),
        held: fc.nat(3),
        wanted: fc.nat(8),
      }),
      { maxLength: 8 },
    );
    fc.assert(
      fc.property(demands, fc.nat(30), (drawn, slots) => {
        const all = drawn.map((one, index) => ({ ...one, build: `b${index}`, wanted: Math.max(one.held, one.wanted) }));
        const shared = shareSlots(all, slots);
        const sum = (of: Iterable<number>) => [...of].reduce((total, count) => total + count, 0);
        const [held, wanted] = [sum(all.map((one) => one.held)), sum(all.map((one) => one.wanted))];
        expect(sum(shared.values())).toBe(Math.max(held, Math.min(slots, wanted)));
        expect(new Map([...shareSlots(all.toReversed(), slots)].reverse())).toEqual(shared);
      }),
    );
  });
});
