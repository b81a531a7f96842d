import { expect, test } from "vitest";
import { createLines } from "./line.ts";

test("what has the same key runs one after the other, whatever becomes of the one before", async () => {
  const lines = createLines();
  const first = Promise.withResolvers<string>();
  const begun: string[] = [];
  const begin = (name: string, work: Promise<string>) => async () => {
    begun.push(name);
    return await work;
  };
  const results = [
    lines.run("a", begin("first", first.promise)),
    lines.run("a", begin("second", Promise.resolve("2"))),
    lines.run("b", begin("other", Promise.resolve("3"))),
  ];
  const settled = Promise.allSettled(results);
  expect(await results[2]).toBe("3");
  expect(begun).toEqual(["first", "other"]);
  first.reject(new Error("no"));
  expect((await settled).map(({ status }) => status)).toEqual(["rejected", "fulfilled", "fulfilled"]);
  expect(begun).toEqual(["first", "other", "second"]);
});

test("who gives up is let go, and the work goes on for others", async () => {
  const lines = createLines();
  const work = Promise.withResolvers<string>();
  const giving = new AbortController();
  const impatient = lines.run("a", () => work.promise, giving.signal);
  giving.abort();
  await expect(impatient).rejects.toMatchObject({ code: "aborted" });
  const patient = lines.run("a", async () => "after it");
  work.resolve("done");
  expect(await patient).toBe("after it");
});

test("disposing ends the work, and waits for it", async () => {
  const lines = createLines();
  const ended: boolean[] = [];
  const work = lines.run("a", async (signal) => {
    await new Promise((resolve) => signal.addEventListener("abort", resolve));
    ended.push(true);
  });
  // It begins in the next round.
  await Promise.resolve();
  await lines[Symbol.asyncDispose]();
  expect(ended).toEqual([true]);
  await work;
});
