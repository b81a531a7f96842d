import { describe, expect, test } from "vitest";
import { asProgramsSee, tools, user } from "./testing/conversation.ts";
import { turnEvents } from "./turn-events.ts";

describe("a turn as events", () => {
  const request = asProgramsSee({ tools: tools("Bash") });

  test("comes in pieces that give the whole, between start and stop", () => {
    const text = "Grüße, 👋🏽 ".repeat(20);
    const events = turnEvents(request, { text });
    const pieces = events.flatMap((event) => (event.type === "text" ? [event.text] : []));
    expect(pieces.length).toBeGreaterThan(5);
    expect(pieces.join("")).toBe(text);
    expect(pieces.every((piece) => piece.isWellFormed())).toBe(true);
    expect([events.at(0)?.type, events.at(-1)]).toEqual(["start", { type: "stop", reason: "end" }]);
  });

  test("is the same for the same request, and its ids differ for another", () => {
    const turn = { text: "hello", actions: [{ run: "ls" }, { run: "pwd" }] };
    expect(turnEvents(request, turn)).toEqual(turnEvents(request, turn));
    const other = turnEvents(asProgramsSee({ tools: tools("Bash"), messages: [user("Other")] }), turn);
    const ids = [...turnEvents(request, turn), ...other].flatMap((event) => ("id" in event ? [event.id] : []));
    expect(new Set(ids).size).toBe(6);
  });

  test("stops for its tool calls", () => {
    const events = turnEvents(request, { actions: [{ run: "ls" }] });
    expect(events.at(-1)).toEqual({ type: "stop", reason: "tool_call" });
  });

  test("counts bytes as tokens where the turn gives no figures", () => {
    const usage = turnEvents(request, { text: "12345678", usage: { cacheRead: 70 } }).findLast(
      ({ type }) => type === "usage",
    );
    expect(usage).toMatchObject({ usage: { output: 2, cacheRead: 70, cacheWrite: 0 } });
    const given = { input: 1, output: 2, cacheRead: 3, cacheWrite: 4 };
    expect(turnEvents(request, { text: "x", usage: given })).toContainEqual({ type: "usage", usage: given });
  });

  test("an object is JSON text, or the call of the demanded tool", () => {
    const object = { title: "A" };
    expect(turnEvents(request, { object })).toContainEqual({ type: "text", text: '{"title":"A"}' });
    const demanded = asProgramsSee({ tools: tools("json"), toolChoice: { name: "json" } });
    const events = turnEvents(demanded, { object });
    expect(events).toContainEqual(expect.objectContaining({ type: "tool_start", name: "json" }));
    expect(events).toContainEqual({ type: "tool_input", text: '{"title":"A"}' });
  });
});
