import { expect, test } from "vitest";
import { createSharedWork, type WorkOptions } from "./sharing.ts";

/** Work that ends when the test says so, or as soon as it is aborted. */
function work() {
  const { promise, resolve, reject } = Promise.withResolvers<string>();
  const begun: WorkOptions[] = [];
  const start = (options: WorkOptions) => {
    begun.push(options);
    options.signal.addEventListener("abort", () => reject(new Error("ended by abort")));
    return promise;
  };
  return { start, begun, resolve, reject };
}

const patient = () => new AbortController().signal;

test("is begun once for all who ask while it runs, and told to all of them", async () => {
  const shared = createSharedWork<string>();
  const { start, begun, resolve } = work();
  const heard: string[] = [];
  const join = (name: string) =>
    shared.join("key", { signal: patient(), progress: (line) => heard.push(`${name} ${line}`) }, start);
  const results = [join("first"), join("second")];
  begun[0]?.progress?.("line");
  resolve("done");
  expect(await Promise.all(results)).toEqual(["done", "done"]);
  expect(begun).toHaveLength(1);
  expect(heard).toEqual(["first line", "second line"]);
});

test("goes on when one of those who wait gives up, and ends when the last does", async () => {
  const shared = createSharedWork<string>();
  const { start, begun } = work();
  const [first, second] = [new AbortController(), new AbortController()];
  const results = [first, second].map(({ signal }) => shared.join("key", { signal }, start));
  first.abort();
  await expect(results[0]).rejects.toMatchObject({ code: "aborted" });
  expect(begun[0]?.signal.aborted).toBe(false);
  second.abort();
  expect(begun[0]?.signal.aborted).toBe(true);
  await expect(results[1]).rejects.toThrow("ended by abort");
});

test("that was aborted or has failed is begun anew by the next to ask", async () => {
  const shared = createSharedWork<string>();
  const controller = new AbortController();
  const aborted = shared.join("key", { signal: controller.signal }, work().start);
  controller.abort();
  const failing = work();
  const failed = shared.join("key", { signal: patient() }, failing.start);
  failing.reject(new Error("no"));
  await expect(aborted).rejects.toThrow("ended by abort");
  await expect(failed).rejects.toThrow("no");
  const good = work();
  good.resolve("done");
  expect(await shared.join("key", { signal: patient() }, good.start)).toBe("done");
});

test("is not begun for a caller that has given up already", async () => {
  const { start, begun } = work();
  const shared = createSharedWork<string>();
  await expect(shared.join("key", { signal: AbortSignal.abort() }, start)).rejects.toMatchObject({ code: "aborted" });
  expect(begun).toEqual([]);
});
