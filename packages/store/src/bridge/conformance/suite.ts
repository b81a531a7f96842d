import { afterAll, beforeAll, describe } from "vitest";
import { describeBadInput } from "./bad-input.ts";
import { describeClaims } from "./claims.ts";
import { describeConsumers } from "./consumers.ts";
import { describeMessages } from "./messages.ts";
import type { BridgeSubject } from "./subject.ts";
import { describeSubscriptions } from "./subscriptions.ts";

/** What every bridge has to pass. Its test calls this once; docs/guides/add-a-bridge.md shows how. */
export function describeBridge(name: string, setUp: () => Promise<BridgeSubject>): void {
  describe(`${name} conforms to the port`, () => {
    let subject: BridgeSubject | undefined;
    beforeAll(async () => {
      subject = await setUp();
    });
    afterAll(async () => await subject?.[Symbol.asyncDispose]());
    const current = () => {
      if (subject === undefined) throw new Error("the bridge was not set up");
      return subject;
    };
    describeMessages(current);
    describeSubscriptions(current);
    describeConsumers(current);
    describeClaims(current);
    describeBadInput(current);
  });
}
