import { expect, test } from "vitest";
import { createTurns } from "./turns.ts";

test("so many run at once, others follow in their order, and one that fails makes room, too", async () => {
  const inTurn = createTurns(2);
  const gates = Array.from({ length: 5 }, () => Promise.withResolvers<void>());
  const begun: number[] = [];
  const ends = gates.map((gate, index) =>
    inTurn(async () => {
      begun.push(index);
      await gate.promise;
    }),
  );
  expect(begun).toEqual([0, 1]);
  gates[1]?.reject(new Error("failed"));
  await expect(ends[1]).rejects.toThrow("failed");
  expect(begun).toEqual([0, 1, 2]);
  for (const gate of gates) gate.resolve();
  await Promise.allSettled(ends);
  expect(begun).toEqual([0, 1, 2, 3, 4]);
  await inTurn(async () => void begun.push(5));
  expect(begun).toHaveLength(6);
});
