import { readFile } from "node:fs/promises";
import { join } from "node:path";
import type { AgentEvent } from "@slipway/contract";
import { type ScriptedProgram, startScriptedModel, type Turn } from "@slipway/gateway/scripted";
import { describe, expect, onTestFinished, test } from "vitest";
import { goOnPrompt } from "../text.ts";
import { openTestAgent, takeTurn } from "./testing.ts";

const endedCalls = (events: readonly AgentEvent[]) =>
  events.filter((event) => event.type === "tool" && event.phase === "end");

test("the agent writes a file, runs a command and says what it did", async () => {
  const { agent, workdir } = await openTestAgent(({ step }) => {
    if (step === 0) return { text: "I write.", actions: [{ write: "a/hello.txt", content: "hello\n" }] };
    if (step === 1) return { actions: [{ run: "cat a/hello.txt; echo oops >&2; exit 3" }] };
    return { text: "All done." };
  });
  const events = await takeTurn(agent, "Write hello");
  expect(await readFile(join(workdir, "a/hello.txt"), "utf8")).toBe("hello\n");
  expect(endedCalls(events)).toMatchObject([
    { name: "createOrUpdateFiles", kind: "edit", ok: true },
    { name: "terminal", kind: "execute", ok: false, output: "hello\noops\n\n[exit code 3]" },
  ]);
  expect(events.at(-1)).toEqual({ type: "done", outcome: "completed", text: "All done." });
});

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

test("a call of an unknown tool, or with a wrong input, is told to the model and ends nothing", async () => {
  const { agent } = await openTestAgent(({ step, results }) => {
    if (step === 0) return { actions: [{ tool: "terminal", input: { command: 7 } }] };
    return { text: `told: ${results.map(({ text }) => text).join()}` };
  });
  const events = await takeTurn(agent, "Go");
  expect(endedCalls(events)).toMatchObject([{ name: "terminal", ok: false }]);
  expect(events.at(-1)).toMatchObject({ outcome: "completed", text: expect.stringMatching(/told: .*command/s) });
});

test("more steps than allowed end the turn", async () => {
  const { agent } = await openTestAgent(({ step }) => ({ actions: [{ run: `echo ${step}` }] }), {
    limits: { maxSteps: 3 },
  });
  const events = await takeTurn(agent, "Go");
  expect(endedCalls(events)).toHaveLength(3);
  expect(events.at(-1)).toMatchObject({ type: "done", outcome: "max_steps" });
});

describe("permissions", () => {
  const work: ScriptedProgram = ({ step, results }) => {
    if (step === 0) return { actions: [{ write: "a.txt", content: "a" }] };
    if (step === 1) return { actions: [{ read: "a.txt" }] };
    return { text: results.map(({ text }) => text).join() };
  };

  test.each([
    [true, "a"],
    [false, expect.stringContaining("no such file")],
  ])("an action waits for the user's answer: %j", async (allow, read) => {
    const { agent } = await openTestAgent(work, { permissions: "ask" });
    const asked: AgentEvent[] = [];
    let final: AgentEvent | undefined;
    for await (const event of agent.turn("Go", { signal: new AbortController().signal })) {
      final = event;
      if (event.type !== "permission") continue;
      asked.push(event);
      agent.answer({ id: event.id, allow, reason: "not today" });
    }
    expect(asked).toMatchObject([{ tool: "createOrUpdateFiles", input: expect.stringContaining("a.txt") }]);
    expect(final).toMatchObject({ type: "done", outcome: "completed", text: read });
  });

  test("a turn that is ended while it asks is over, and the action is not made", async () => {
    const { agent, workdir } = await openTestAgent(work, { permissions: "ask" });
    const controller = new AbortController();
    for await (const event of agent.turn("Go", { signal: controller.signal })) {
      if (event.type === "permission") controller.abort();
    }
    await expect(readFile(join(workdir, "a.txt"))).rejects.toThrow();
  });
});

describe("steering", () => {
  test("words of the user are taken up at the next step", async () => {
    const { agent } = await openTestAgent(({ prompt, lastPrompt }) => {
      return prompt === lastPrompt ? { actions: [{ run: "echo waited" }] } : { text: `I heard: ${lastPrompt}` };
    });
    let final: AgentEvent | undefined;
    for await (const event of agent.turn("Go", { signal: new AbortController().signal })) {
      if (event.type === "tool" && event.phase === "start") expect(agent.steer("Turn left")).toBe(true);
      final = event;
    }
    expect(final).toMatchObject({ type: "done", text: "I heard: Turn left" });
    expect(agent.steer("Too late")).toBe(false);
  });

  test("words that come while the model gives its last answer make it go on", async () => {
    const { agent } = await openTestAgent(({ lastPrompt }) => ({ text: `Answer to ${lastPrompt}` }));
    let isSteered = false;
    const texts: string[] = [];
    for await (const event of agent.turn("one", { signal: new AbortController().signal })) {
      if (event.type === "status" && !isSteered) isSteered = agent.steer("two");
      if (event.type === "done") texts.push(event.text);
    }
    expect(texts).toEqual(["Answer to two"]);
  });
});

describe("a conversation", () => {
  test("goes on after a restart at any saved point, and makes no call again that was begun", async () => {
    const program: ScriptedProgram = ({ step }) => {
      if (step < 3) return { actions: [{ run: `echo ${step} >> log; sleep 0` }] };
      return { text: "Done." };
    };
    const first = await openTestAgent(program);
    await takeTurn(first.agent, "Count");
    const whole = await readFile(join(first.workdir, "log"), "utf8");
    expect(whole).toBe("0\n1\n2\n");
    for (const state of first.states) {
      const { agent, workdir } = await openTestAgent(program, { state });
      const events = await takeTurn(agent, goOnPrompt);
      expect(events.at(-1)).toMatchObject({ type: "done", outcome: "completed", text: "Done." });
      const begun = await readFile(join(workdir, "log"), "utf8").catch(() => "");
      expect(whole.endsWith(begun)).toBe(true);
    }
  });

  test("an interrupted call has a result in the next turn", async () => {
    const { agent } = await openTestAgent(({ lastPrompt, request }) => {
      if (lastPrompt === "Go") return { actions: [{ run: "echo begun; sleep 1000" }] };
      const results = request.messages.flatMap(({ parts }) => parts.filter((part) => part.type === "tool_result"));
      return { text: JSON.stringify(results) };
    });
    const controller = new AbortController();
    const events: AgentEvent[] = [];
    for await (const event of agent.turn("Go", { signal: controller.signal })) {
      events.push(event);
      if (event.type === "tool" && event.phase === "start") controller.abort();
    }
    expect(endedCalls(events)).toMatchObject([{ name: "terminal", ok: false }]);
    const [, last] = [await takeTurn(agent, "What happened?")].flatMap((turn) => [turn, turn.at(-1)]);
    expect(last).toMatchObject({ outcome: "completed", text: expect.stringContaining("interrupted") });
  });

  test("that is too long is summarised by the model, and the first prompt and the latest steps stay", async () => {
    const big = "x".repeat(3_000);
    let longest = 0;
    const { agent } = await openTestAgent(
      ({ tools, request, prompt }) => {
        const size = JSON.stringify(request.messages).length;
        if (tools.length === 0) return { text: "SUMMARY of what was done" };
        longest = Math.max(longest, size);
        const calls = request.messages.flatMap(({ parts }) => parts.filter((part) => part.type === "tool_call")).length;
        const isSummarised = JSON.stringify(request.messages).includes("SUMMARY");
        if (isSummarised && calls >= 6) return { text: `first: ${prompt.slice(0, 9)}` };
        return { actions: [{ run: `echo ${size} ${big}` }] };
      },
      { compactAtTokens: 12_000 },
    );
    const events = await takeTurn(agent, "Remember me");
    expect(events.filter((event) => event.type === "status" && event.status === "compacting")).toHaveLength(1);
    expect(events.at(-1)).toMatchObject({ outcome: "completed", text: "first: Remember " });
    expect(longest).toBeLessThan(12_000 * 3.5 * 1.5);
  });

  test("that can not be saved ends the turn", async () => {
    const { agent } = await openTestAgent(({ step }) => ({ actions: [{ run: `echo ${step}` }] }), {
      save: async () => {
        throw new Error("disk full");
      },
    });
    await expect(takeTurn(agent, "Go")).rejects.toThrow("disk full");
  });

  test("with a state that is none is refused", async () => {
    const opening = openTestAgent(() => ({ text: "" }), { state: { messages: "none" } });
    await expect(opening).rejects.toMatchObject({ code: "internal" });
  });
});
