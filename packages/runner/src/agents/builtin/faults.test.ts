import { readFile } from "node:fs/promises";
import { join } from "node:path";
import type { AgentEvent } from "@slipway/contract";
import { type ScriptedProgram, startScriptedModel, type Turn } from "@slipway/gateway/scripted";
import { describe, expect, onTestFinished, test } from "vitest";
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
});

describe("a gateway that is gone", () => {
  const listening = async (port: number, program: ScriptedProgram) => {
    const model = await startScriptedModel({ programs: { test: program }, listen: { host: "127.0.0.1", port } });
    onTestFinished(() => model.close());
    return model;
  };

  test.each([
    ["between two calls", {}],
    ["in the middle of an answer", { fault: "cut" }],
  ] as const)("%s is waited for, and the turn goes on", async (_when, fault) => {
    const program: ScriptedProgram = ({ step }) => {
      return step === 0 ? { actions: [{ run: "echo 1 >> log" }] } : { text: "The work is done and all is well." };
    };
    const first = await listening(0, (request) => ({ ...program(request), ...(request.step > 0 && fault) }) as Turn);
    const { agent, workdir } = await openTestAgent(program, { baseUrl: first.baseUrl, hostAwayMs: 60_000 });
    const events: AgentEvent[] = [];
    for await (const event of agent.turn("Go", { signal: new AbortController().signal })) {
      events.push(event);
      if (event.type === "tool" && event.phase === "start" && !("fault" in fault)) await first.close();
      if (event.type !== "status" || event.status !== "retrying") continue;
      await first.close();
      await listening(Number(new URL(first.baseUrl).port), program);
    }
    expect(events.at(-1)).toMatchObject({ type: "done", outcome: "completed" });
    expect(await readFile(join(workdir, "log"), "utf8")).toBe("1\n");
  });

  test("for too long ends the turn as a network error", async () => {
    const { agent } = await openTestAgent(() => ({ text: "" }), { baseUrl: "http://127.0.0.1:1", hostAwayMs: 300 });
    const events = await takeTurn(agent, "Go");
    expect(events.filter((event) => event.type === "status" && event.status === "retrying")).toHaveLength(1);
    expect(events.at(-1)).toMatchObject({ type: "error", kind: "network" });
  });

  test("is not waited for by a turn that is ended", async () => {
    const { agent } = await openTestAgent(() => ({ text: "" }), { baseUrl: "http://127.0.0.1:1", hostAwayMs: 60_000 });
    const controller = new AbortController();
    let final: AgentEvent | undefined;
    for await (const event of agent.turn("Go", { signal: controller.signal })) {
      final = event;
      if (event.type === "status" && event.status === "retrying") controller.abort();
    }
    expect(final).toMatchObject({ type: "done", outcome: "cancelled" });
  });
});
