import { SlipwayError } from "@slipway/contract";
import { expect, test } from "vitest";
import type { Dialect } from "../dialects/dialect.ts";
import { dialects } from "../dialects/index.ts";
import { plainRequest, writeStream } from "../dialects/testing.ts";
import { answerOf } from "../testing/answer.ts";
import { type Delivery, passStream } from "./pass-stream.ts";

const spoken = writeStream(dialects.chat, [
  { type: "start", id: "1", model: "some-model" },
  { type: "text", text: "Hello" },
  { type: "stop", reason: "end" },
]);

test("an answer that ends in a translation without an end is a defect", async () => {
  const translated = { dialect: dialects.chat, translated: plainRequest };
  expect(await passStream(answerOf(Buffer.from(spoken)), deliveryOf(translated))).toBeUndefined();
  const deaf: Dialect = { ...dialects.chat, streamReader: () => ({ push: () => [] }) };
  const failure = await passStream(
    answerOf(Buffer.from(spoken)),
    deliveryOf({ dialect: deaf, translated: plainRequest }),
  );
  expect(failure).toMatchObject({ code: "internal", cause: expect.any(Error) });
});

test("what comes before nonsense in one chunk is delivered", async () => {
  const written: string[] = [];
  const response = { write: (text: string) => written.push(text) > 0 } as unknown as Delivery["response"];
  const delivery = { ...deliveryOf({ dialect: dialects.chat, translated: plainRequest }), response };
  const [begun = ""] = spoken.split(/(?<=Hello.*\n\n)/);
  const failure = await passStream(answerOf(Buffer.from(`${begun}data: {nonsense\n\n`)), delivery);
  expect(failure).toMatchObject({ code: "invalid_answer" });
  expect(written.join("")).toContain("Hello");
});

test("what has all come is delivered without the money for it, and a broken ledger is a defect all the same", async () => {
  const untranslated = { dialect: dialects.chat, translated: undefined };
  const poor = new SlipwayError("budget_exhausted", "no more");
  expect(await passStream(answerOf(Buffer.from(spoken)), deliveryOf(untranslated, poor))).toBeUndefined();
  const broken = new Error("the disk is gone");
  expect(await passStream(answerOf(Buffer.from(spoken)), deliveryOf(untranslated, broken))).toMatchObject({
    code: "internal",
    cause: broken,
  });
});

/** Without a refusal all output is covered; with one, none is. */
function deliveryOf(prepared: Pick<Delivery["prepared"], "dialect" | "translated">, refusal?: Error): Delivery {
  return {
    prepared: prepared as Delivery["prepared"],
    dialect: dialects.anthropic,
    response: { write: () => true } as unknown as Delivery["response"],
    reservation: { covers: () => refusal === undefined, extend: () => Promise.reject(refusal) },
    meter: dialects.chat.meter(),
  };
}
