import type { AgentEvent } from "@slipway/contract";
import type { ScriptedProgram } from "@slipway/gateway/scripted";
import { describe, expect, test } from "vitest";
import { endOf } from "../../testing/end.ts";
import { endedCalls, openTestAgent, takeTurn } from "./testing.ts";

describe("a fault of the model", () => {
  test.each([
    [{ status: 429 }, { reason: "rate_limited" }],
    [{ status: 500 }, { reason: "overloaded" }],
    [{ status: 529 }, { reason: "overloaded" }],
    [{ status: 401 }, { reason: "auth" }],
    [{ status: 404 }, { reason: "model_not_found" }],
    [{ status: 400 }, { reason: "invalid_request" }],
    ["reset", { reason: "network" }],
    ["cut", { reason: "truncated" }],
    ["endEarly", { reason: "truncated" }],
    ["invalidJson", { reason: "protocol" }],
    ["failure", { reason: "overloaded" }],
    ["refusal", { reason: "refused" }],
  ] as const)("%j has its typed end, at the first call and later", async (fault, end) => {
    const work: ScriptedProgram = ({ step, lastPrompt }) => {
      const turn = step === 0 ? { actions: [{ run: "echo work" }] } : { text: "The work is done and all is well." };
      return String(step) === lastPrompt ? { ...turn, fault } : turn;
    };
    for (const step of ["0", "1"]) {
      const { agent } = await openTestAgent(work);
      expect(endOf(await takeTurn(agent, step))).toMatchObject(end);
    }
  });

  test("a turn that is ended does not wait for a silent model", async () => {
    const { agent } = await openTestAgent(() => ({ fault: "hangStream", text: "I begin to say something" }));
    const controller = new AbortController();
    const events: AgentEvent[] = [];
    for await (const event of agent.turn("Go", { signal: controller.signal })) {
      events.push(event);
      if (event.type === "text") controller.abort();
    }
    expect(endOf(events)).toEqual({ reason: "cancelled", message: "" });
  });

  test("an answer that is cut off at the model's limit is truncated", async () => {
    const { agent } = await openTestAgent(() => ({ text: "And then", stop: "max_tokens" }));
    expect(endOf(await takeTurn(agent, "Tell"))).toMatchObject({ reason: "truncated" });
  });

  test("calls of a truncated answer are not made", async () => {
    const { agent } = await openTestAgent(({ step }) =>
      step === 0 ? { actions: [{ run: "echo acted" }], fault: "endEarly" } : { text: "Done." },
    );
    const events = await takeTurn(agent, "Act");
    expect(endedCalls(events)).toEqual([]);
    expect(endOf(events)).toMatchObject({ reason: "truncated" });
  });

  test("an address without a listener is a network error", async () => {
    const { agent } = await openTestAgent(() => ({ text: "" }), { baseUrl: "http://127.0.0.1:1" });
    expect(endOf(await takeTurn(agent, "Go"))).toMatchObject({ reason: "network" });
  });
});
