import type { AgentEvent } from "@slipway/contract";
import type { ScriptedProgram } from "@slipway/gateway/scripted";
import { describe, expect, test } from "vitest";
import { endedCalls, openTestAgent, takeTurn } from "./testing.ts";

describe("a fault of the model", () => {
  test.each([
    [{ status: 429 }, { type: "error", kind: "rate_limited" }],
    [{ status: 500 }, { type: "error", kind: "overloaded" }],
    [{ status: 529 }, { type: "error", kind: "overloaded" }],
    [{ status: 401 }, { type: "error", kind: "auth" }],
    [{ status: 404 }, { type: "error", kind: "model_not_found" }],
    [{ status: 400 }, { type: "error", kind: "invalid_request" }],
    ["reset", { type: "error", kind: "network" }],
    ["cut", { type: "error", kind: "truncated" }],
    ["endEarly", { type: "error", kind: "truncated" }],
    ["invalidJson", { type: "error", kind: "protocol" }],
    ["failure", { type: "error", kind: "overloaded" }],
    ["refusal", { type: "done", outcome: "refused" }],
  ] as const)("%j has its typed end, at the first call and later", async (fault, end) => {
    const work: ScriptedProgram = ({ step, lastPrompt }) => {
      const turn = step === 0 ? { actions: [{ run: "echo work" }] } : { text: "The work is done and all is well." };
      return String(step) === lastPrompt ? { ...turn, fault } : turn;
    };
    for (const step of ["0", "1"]) {
      const { agent } = await openTestAgent(work);
      expect((await takeTurn(agent, step)).at(-1)).toMatchObject(end);
    }
  });

  test("a model that says nothing is left when the turn is ended", async () => {
    const { agent } = await openTestAgent(() => ({ fault: "hangStream", text: "I begin to say something" }));
    const controller = new AbortController();
    const events: AgentEvent[] = [];
    for await (const event of agent.turn("Go", { signal: controller.signal })) {
      events.push(event);
      if (event.type === "text") controller.abort();
    }
    expect(events.at(-1)).toEqual({ type: "done", outcome: "cancelled", text: "" });
  });

  test("an answer that is cut off at its longest is no answer", async () => {
    const { agent } = await openTestAgent(() => ({ text: "And then", stop: "max_tokens" }));
    expect((await takeTurn(agent, "Tell")).at(-1)).toMatchObject({ type: "error", kind: "truncated" });
  });

  test("calls of an answer that was cut are not made", async () => {
    const { agent } = await openTestAgent(({ step }) =>
      step === 0 ? { actions: [{ run: "echo acted" }], fault: "endEarly" } : { text: "Done." },
    );
    const events = await takeTurn(agent, "Act");
    expect(endedCalls(events)).toEqual([]);
    expect(events.at(-1)).toMatchObject({ type: "error", kind: "truncated" });
  });

  test("nobody at the address is a network error", async () => {
    const { agent } = await openTestAgent(() => ({ text: "" }), { baseUrl: "http://127.0.0.1:1" });
    expect((await takeTurn(agent, "Go")).at(-1)).toMatchObject({ type: "error", kind: "network" });
  });
});
