import { expect, test } from "vitest";
import { createKeptEvidence } from "./kept.ts";

const evidence = (name: string) => ({ tests: [{ file: null, name, outcome: "passed" } as const], unread: [] });
const { signal } = new AbortController();
const never = () => Promise.reject(new Error("it is there"));

test("evidence is made once, for all who ask meanwhile and later", async () => {
  const kept = createKeptEvidence();
  let times = 0;
  const make = async () => evidence(String(++times));
  expect(await Promise.all([kept.of("a", make, signal), kept.of("a", make, signal)])).toEqual([
    evidence("1"),
    evidence("1"),
  ]);
  expect(await kept.of("a", never, signal)).toEqual(evidence("1"));
  kept.keep("b", evidence("own"));
  expect(await kept.of("b", never, signal)).toEqual(evidence("own"));
});

test("who waits for one that gives up makes it, and what has failed is not kept", async () => {
  const kept = createKeptEvidence();
  const failing = Promise.withResolvers<ReturnType<typeof evidence>>();
  const first = kept.of("a", () => failing.promise, signal);
  const second = kept.of("a", async () => evidence("second"), signal);
  failing.reject(new Error("gave up"));
  await expect(first).rejects.toThrow("gave up");
  expect(await second).toEqual(evidence("second"));
});

test("who gives up waits no longer, and the others get what is made", async () => {
  const kept = createKeptEvidence();
  const making = Promise.withResolvers<ReturnType<typeof evidence>>();
  const first = kept.of("a", () => making.promise, signal);
  await expect(kept.of("a", never, AbortSignal.abort(new Error("enough")))).rejects.toThrow("enough");
  making.resolve(evidence("first"));
  expect(await first).toEqual(evidence("first"));
});

test("of many the oldest are dropped", async () => {
  const kept = createKeptEvidence();
  for (let i = 0; i < 30; i++) kept.keep(String(i), evidence(String(i)));
  await expect(kept.of("0", never, signal)).rejects.toThrow();
  expect(await kept.of("29", never, signal)).toEqual(evidence("29"));
});
