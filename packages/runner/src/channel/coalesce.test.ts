import fc from "fast-check";
import { expect, test } from "vitest";
import { createCoalescer } from "./coalesce.ts";
import { ended, note, text } from "./testing/events.ts";

test("pieces of one agent's text become one event", () => {
  const texts = createCoalescer();
  expect([text("a"), text("b"), text("c")].flatMap(texts.push)).toEqual([]);
  expect(texts.isHolding).toBe(true);
  expect(texts.flush()).toEqual([text("abc")]);
  expect(texts.isHolding).toBe(false);
});

test("thinking is not joined with the answer", () => {
  const texts = createCoalescer();
  texts.push(text("hm", "lead", "thinking"));
  expect(texts.push(text("yes"))).toEqual([text("hm", "lead", "thinking")]);
  expect(texts.flush()).toEqual([text("yes")]);
});

test("texts of concurrent agents are joined separately", () => {
  const texts = createCoalescer();
  const pieces = [text("a"), text("1", "worker-1"), text("b"), text("2", "worker-1")];
  expect(pieces.flatMap(texts.push)).toEqual([]);
  expect(texts.flush()).toEqual([text("ab"), text("12", "worker-1")]);
});

test("an agent's text precedes what the agent does next and what concerns all agents", () => {
  const texts = createCoalescer();
  const status = { type: "agent", agent: "lead", event: { type: "status", status: "idle" } } as const;
  texts.push(text("a"));
  texts.push(text("1", "worker-1"));
  expect(texts.push(status)).toEqual([text("a"), status]);
  expect(texts.push(note("n"))).toEqual([text("1", "worker-1"), note("n")]);
  expect(texts.push(ended)).toEqual([ended]);
});

test("no text is lost, and each agent's stays in order", () => {
  const piece = fc.record({
    agent: fc.constantFrom("lead", "worker-1", "worker-2"),
    channel: fc.constantFrom("answer" as const, "thinking" as const),
    delta: fc.oneof(fc.string(), fc.constant("x".repeat(10_000))),
  });
  fc.assert(
    fc.property(fc.array(fc.oneof(piece, fc.constant("note" as const))), (steps) => {
      const texts = createCoalescer();
      const events = steps.map((step) => (step === "note" ? note("n") : text(step.delta, step.agent, step.channel)));
      const out = [...events.flatMap(texts.push), ...texts.flush()];
      const said = (list: typeof events, agent: string) =>
        list
          .flatMap((event) =>
            event.type === "agent" && event.agent === agent && event.event.type === "text" ? event.event : [],
          )
          .map((each) => [...each.text].map((character) => each.channel[0] + character).join(""))
          .join("");
      for (const agent of ["lead", "worker-1", "worker-2"]) expect(said(out, agent)).toBe(said(events, agent));
      expect(out.filter(({ type }) => type === "note")).toEqual(events.filter(({ type }) => type === "note"));
    }),
  );
});
