import { expect, test } from "vitest";
import {
  applyToContext,
  bridgeTopics,
  type OutgoingMessage,
  outgoingMessageSchema,
  type SharedContext,
} from "./bridge.ts";

const entry = (name: string, value: string | null): OutgoingMessage => ({
  topic: "context",
  key: `${name} ${value}`,
  from: "host",
  payload: { section: "decisions", name, value },
});

test("the shared context has the last value of every name, and not what was taken out", () => {
  const messages = [entry("a", "1"), entry("b", "1"), entry("a", "2"), entry("b", null), entry("__proto__", "x")];
  const context = messages.reduce<SharedContext>(applyToContext, { rules: { tabs: "no" } });
  expect(context.rules).toEqual({ tabs: "no" });
  expect(Object.entries(context.decisions ?? {})).toEqual([
    ["a", "2"],
    ["__proto__", "x"],
  ]);
});

test("what is not of the context's topic leaves it as it is", () => {
  const context = { rules: { tabs: "no" } };
  const progress = { topic: "progress", key: "k", from: "host", payload: { phase: "build", text: "" } } as const;
  expect(applyToContext(context, progress)).toBe(context);
});

test("every topic has a message", () => {
  expect(outgoingMessageSchema.options.map(({ shape }) => shape.topic.value)).toEqual(bridgeTopics);
});
