import { SlipwayError } from "@slipway/contract";
import { expect, test } from "vitest";
import { createMemoryLedger } from "../journal/ledger.ts";
import type { Ledger } from "../ports/ports.ts";
import { ask, startTestGateway } from "../testing/gateway.ts";
import { speak } from "../testing/upstream.ts";

/** A ledger that fails for so many calls of each method. */
function failingLedger(methods: readonly (keyof Ledger)[], times: number): Ledger {
  const ledger = createMemoryLedger();
  const failing = (method: keyof Ledger) => {
    let left = times;
    return async (...given: never[]) => {
      if (left-- > 0) throw new SlipwayError("database_busy", "others write");
      return await (ledger[method] as (...given: never[]) => Promise<unknown>)(...given);
    };
  };
  return { ...ledger, ...Object.fromEntries(methods.map((method) => [method, failing(method)])) };
}

test("a settlement that the ledger can not take now is made later, once, and the agent has its whole answer", async () => {
  await using set = await startTestGateway({ ledger: failingLedger(["settle"], 3) });
  expect(await set.post("/v1/messages", ask())).toMatchObject({ status: 200, broken: false });
  expect(await set.run.balance()).toMatchObject({ spentMicroUsd: 759, reservedMicroUsd: 0 });
  expect(set.gateway.health()).toMatchObject([{ requests: 1, inFlight: 0, ends: { complete: 1 } }]);
  expect(set.run.lastResponse()).toMatchObject({ end: "complete" });
});

test("a ledger that is away for a while breaks off no answer, neither before it nor while it grows", async () => {
  await using set = await startTestGateway({ ledger: failingLedger(["reserve", "extend", "left"], 2) });
  set.upstream.behave(speak({ texts: Array.from({ length: 20 }, () => "A sentence of some words. ".repeat(100)) }));
  expect(await set.post("/v1/messages", ask({ max_tokens: 8000 }))).toMatchObject({ status: 200, broken: false });
  expect(await set.run.ranOut()).toBe(false);
});

/** A ledger one method of which is away for good, and when it was first asked. */
function awayLedger(method: keyof Ledger) {
  const asked = Promise.withResolvers<void>();
  const away = () => {
    asked.resolve();
    return Promise.reject(new SlipwayError("database_unavailable", "nobody is there"));
  };
  return { ledger: { ...createMemoryLedger(), [method]: away }, asked: asked.promise };
}

test("who lets go of a run does not wait for its ledger to know whether its money is used up", async () => {
  const { ledger, asked } = awayLedger("left");
  await using set = await startTestGateway({ ledger });
  const letGo = new AbortController();
  const ranOut = set.run.ranOut(letGo.signal);
  await asked;
  letGo.abort(new SlipwayError("aborted", "let go of"));
  await expect(ranOut).rejects.toMatchObject({ code: "aborted" });
});

test("who lets go of a run does not wait for what is not settled to know whether its money is used up", async () => {
  const { ledger, asked } = awayLedger("settle");
  const set = await startTestGateway({ ledger });
  const answer = set.post("/v1/messages", ask());
  await asked;
  const letGo = new AbortController();
  const ranOut = set.run.ranOut(letGo.signal);
  letGo.abort(new SlipwayError("aborted", "let go of"));
  await expect(ranOut).rejects.toMatchObject({ code: "aborted" });
  await set[Symbol.asyncDispose]();
  await answer;
});

test("a gateway that closes does not wait for its ledger, and counts nothing as under way", async () => {
  const { ledger, asked } = awayLedger("settle");
  const set = await startTestGateway({ ledger });
  const answer = set.post("/v1/messages", ask());
  await asked;
  await set[Symbol.asyncDispose]();
  expect(await answer).toMatchObject({ broken: true });
  expect(set.gateway.health()).toMatchObject([{ requests: 1, inFlight: 0 }]);
});
