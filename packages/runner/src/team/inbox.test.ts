import { expect, test } from "vitest";
import { createInbox } from "./inbox.ts";

const finding = { gate: "tests", text: "There is no farewell." };
const about = (offer: number) => ({ sequence: 1, type: "findings" as const, offer, findings: [finding] });

test("findings on an offer count once, however often they arrive", () => {
  const inbox = createInbox({ found: undefined, shared: [], onChange: () => {}, onShare: () => {} });
  inbox.find(about(1), { isTold: false });
  expect(inbox.takeFindings()).toEqual([finding]);
  expect(inbox.isKnown(about(1))).toBe(true);
  inbox.find(about(1), { isTold: false });
  expect(inbox.hasFindings).toBe(false);
  expect(inbox.answerTo(2)).toBeUndefined();
  inbox.find(about(2), { isTold: false });
  expect(inbox.takeFindings()).toEqual([finding]);
  expect(inbox.answerTo(2)).toBe("returned");
});

test("a restored inbox knows which offers were returned", () => {
  const found = { mains: [], findings: [], returned: 3, merged: false };
  const inbox = createInbox({ found, shared: [], onChange: () => {}, onShare: () => {} });
  expect([2, 3, 4].map((offer) => inbox.isKnown(about(offer)))).toEqual([true, true, false]);
});
