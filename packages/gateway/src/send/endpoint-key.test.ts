import fc from "fast-check";
import { expect, test } from "vitest";
import { cutAt } from "../dialects/testing.ts";
import { answerOf } from "../testing/answer.ts";
import { collect } from "./answer.ts";
import { withoutKey } from "./endpoint-key.ts";

const key = "sk-sk-test-sk-te";

test("an answer says the same without its key, however it is cut into chunks", async () => {
  const part = fc.oneof(
    fc.constant(key),
    fc.nat(key.length).map((length) => key.slice(0, length)),
    fc.string(),
    fc.constant("ü"),
  );
  await fc.assert(
    fc.asyncProperty(fc.array(part), fc.array(fc.nat(200)), async (parts, places) => {
      const text = parts.join("");
      const said = await collect(withoutKey(answerOf(...cutAt(Buffer.from(text), places)), { key }), 1e6);
      expect(said.toString()).toBe(text.replaceAll(key, "[key]"));
    }),
  );
});

test("what can not be a part of the key is passed on at once", () => {
  const passed: string[] = [];
  const chunks = ["data: of the disk\n\n", "data: sk", "etch\n\n"].map((text) => Buffer.from(text));
  const sink = { data: (chunk: Uint8Array) => void passed.push(Buffer.from(chunk).toString()), end() {} };
  withoutKey(answerOf(...chunks), { key }).pipe(sink);
  expect(passed).toEqual(["data: of the disk\n\n", "data: ", "sketch\n\n"]);
});
