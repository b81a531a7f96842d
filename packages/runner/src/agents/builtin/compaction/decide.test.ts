import type { ModelMessage } from "ai";
import fc from "fast-check";
import { expect, test } from "vitest";
import { estimateTokens, planCompaction } from "./decide.ts";

function prompt(chars: number): ModelMessage {
  return { role: "user", content: "p".repeat(chars) };
}

/** An answer with a call, and the call's result. */
function step(chars: number): ModelMessage[] {
  const call = { toolCallId: "1", toolName: "terminal" };
  return [
    { role: "assistant", content: [{ ...call, type: "tool-call", input: { command: "x" } }] },
    { role: "tool", content: [{ ...call, type: "tool-result", output: { type: "text", value: "r".repeat(chars) } }] },
  ];
}

const conversations = fc
  .tuple(
    fc.nat(2_000),
    fc.array(
      fc.oneof(
        fc.nat(4_000).map(step),
        fc.nat(500).map((chars) => [prompt(chars)]),
      ),
    ),
  )
  .map(([first, rest]) => [prompt(first), ...rest.flat()]);

test("a conversation within its limit is unchanged", () => {
  fc.assert(
    fc.property(conversations, (messages) => {
      expect(planCompaction(messages, estimateTokens(messages))).toBeUndefined();
    }),
  );
});

test("the first prompt and whole latest steps stay, and a compaction removes more than one message", () => {
  fc.assert(
    fc.property(conversations, fc.integer({ min: 1, max: 5_000 }), (messages, limitTokens) => {
      const plan = planCompaction(messages, limitTokens);
      if (plan === undefined) return;
      expect(plan.from).toBe(1);
      expect(plan.to - plan.from).toBeGreaterThan(1);
      expect(messages[plan.to]?.role).toBe("assistant");
    }),
  );
});

test("the latest six steps stay if they are short, and fewer if they are long", () => {
  const short = [prompt(10), ...Array.from({ length: 20 }, () => step(100)).flat()];
  expect(planCompaction(short, 1_500)).toEqual({ from: 1, to: short.length - 12 });
  const long = [prompt(10), ...Array.from({ length: 20 }, () => step(2_000)).flat()];
  expect(planCompaction(long, 4_000)).toEqual({ from: 1, to: long.length - 6 });
});

test("a conversation of one step has nothing to summarise, however long it is", () => {
  expect(planCompaction([prompt(10), ...step(100_000)], 1_000)).toBeUndefined();
});
