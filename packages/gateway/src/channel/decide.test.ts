import fc from "fast-check";
import { expect, test } from "vitest";
import { sortBatch } from "./decide.ts";
import { end, note, notes } from "./testing.ts";

test.each([
  ["only new events", notes(4, 6), { known: [], fresh: notes(4, 6), late: [] }],
  ["only known events", notes(1, 3), { known: notes(1, 3), fresh: [], late: [] }],
  ["some of both", notes(2, 5), { known: notes(2, 3), fresh: notes(4, 5), late: [] }],
  ["an end, and more", [note(4), end(5), note(6)], { known: [], fresh: [note(4), end(5)], late: [note(6)] }],
  ["a gap before", notes(5, 6), undefined],
  ["a gap within", [note(3), note(5)], undefined],
  ["a step back", [note(4), note(3)], undefined],
])("%s", (_, events, sorted) => {
  expect(sortBatch(events, 4)).toEqual(sorted);
});

test("a batch without a gap loses nothing, and its new events begin at the next number", () => {
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 50 }), fc.nat(49), fc.integer({ min: 1, max: 50 }), (next, back, count) => {
      const first = Math.max(1, next - back);
      const events = notes(first, first + count - 1);
      const { known, fresh, late } = sortBatch(events, next) ?? { known: [], fresh: [], late: [] };
      expect([...known, ...fresh, ...late]).toEqual(events);
      expect(known.every(({ sequence }) => sequence < next)).toBe(true);
      if (fresh[0] !== undefined) expect(fresh[0].sequence).toBe(next);
    }),
  );
});
