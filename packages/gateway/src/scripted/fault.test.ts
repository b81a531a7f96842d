import { describe, expect, test } from "vitest";
import { createFaultCounts, faultOf, withFaults } from "./fault.ts";
import { asProgramsSee, called, result, user } from "./testing/conversation.ts";

describe("faults that a prompt orders", () => {
  test.each([
    ["Build it [fault:cut]", { fault: "cut" }],
    ["[fault:429 x2] Build it", { fault: { status: 429 }, faultTries: 2 }],
    ["[fault:endEarly @3]", { fault: "endEarly", atStep: 3 }],
    ["[fault:529 x1 @0]", { fault: { status: 529 }, faultTries: 1, atStep: 0 }],
    ["Build it", undefined],
  ])("%s", (prompt, fault) => {
    expect(faultOf(prompt)).toEqual(fault);
  });

  test.each(["[fault:200]", "[fault:explode]", "[fault:toString]"])("%s is refused by name", (prompt) => {
    expect(() => faultOf(prompt)).toThrow(expect.objectContaining({ code: "invalid_request" }));
  });

  test("a fault at a step leaves the other steps alone", async () => {
    const program = withFaults(() => ({ text: "hello" }));
    const first = [user("Go [fault:cut @1]")];
    expect(await program(asProgramsSee({ messages: first }))).toEqual({ text: "hello" });
    const second = [...first, called("1", "Bash"), user(result("1", ""))];
    expect(await program(asProgramsSee({ messages: second }))).toEqual({ text: "hello", fault: "cut" });
  });
});

describe("counted faults", () => {
  const turn = { text: "hello", fault: "cut", faultTries: 2 } as const;

  test("fail the first tries of a request, then no more", () => {
    const counts = createFaultCounts();
    const faults = [1, 2, 3, 4].map(() => counts.apply(asProgramsSee(), turn).fault);
    expect(faults).toEqual(["cut", "cut", undefined, undefined]);
  });

  test("are counted for each request by itself", () => {
    const counts = createFaultCounts();
    for (let tries = 0; tries < 3; tries++) counts.apply(asProgramsSee(), turn);
    expect(counts.apply(asProgramsSee({ messages: [user("Another")] }), turn).fault).toBe("cut");
  });

  test("without a number never cease", () => {
    const counts = createFaultCounts();
    for (let tries = 0; tries < 10; tries++) {
      expect(counts.apply(asProgramsSee(), { fault: "hang" }).fault).toBe("hang");
    }
  });
});
