import { readFile } from "node:fs/promises";
import { join } from "node:path";
import type { AgentEvent } from "@slipway/contract";
import type { ScriptedProgram } from "@slipway/gateway/scripted";
import { describe, expect, test } from "vitest";
import { endOf } from "../../testing/end.ts";
import { endedCalls, openTestAgent, takeTurn } from "./testing.ts";

test("the agent writes a file, runs a command and reports what it did", async () => {
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
  expect(endOf(events)).toEqual({ reason: "completed", message: "All done." });
});

test("the model learns of a call of an unknown tool or with invalid input, and the turn continues", async () => {
  const { agent } = await openTestAgent(({ step, results }) => {
    if (step === 0) return { actions: [{ tool: "terminal", input: { command: 7 } }] };
    return { text: `told: ${results.map(({ text }) => text).join()}` };
  });
  const events = await takeTurn(agent, "Go");
  expect(endedCalls(events)).toMatchObject([{ name: "terminal", ok: false }]);
  expect(endOf(events)).toMatchObject({ reason: "completed", message: expect.stringMatching(/told: .*command/s) });
});

test("more steps than allowed end the turn", async () => {
  const { agent } = await openTestAgent(({ step }) => ({ actions: [{ run: `echo ${step}` }] }), {
    limits: { maxSteps: 3 },
  });
  const events = await takeTurn(agent, "Go");
  expect(endedCalls(events)).toHaveLength(3);
  expect(endOf(events)).toMatchObject({ reason: "max_steps" });
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
    expect(final).toMatchObject({ end: { reason: "completed", message: read } });
  });

  test("a turn that is ended while it asks does not take the action", async () => {
    const { agent, workdir } = await openTestAgent(work, { permissions: "ask" });
    const controller = new AbortController();
    for await (const event of agent.turn("Go", { signal: controller.signal })) {
      if (event.type === "permission") controller.abort();
    }
    await expect(readFile(join(workdir, "a.txt"))).rejects.toThrow();
  });
});

describe("steering", () => {
  test("the user's words reach the agent at its next step", async () => {
    const { agent } = await openTestAgent(({ prompt, lastPrompt }) => {
      return prompt === lastPrompt ? { actions: [{ run: "echo waited" }] } : { text: `I heard: ${lastPrompt}` };
    });
    let final: AgentEvent | undefined;
    for await (const event of agent.turn("Go", { signal: new AbortController().signal })) {
      if (event.type === "tool" && event.phase === "start") expect(agent.steer("Turn left")).toBe(true);
      final = event;
    }
    expect(final).toMatchObject({ end: { message: "I heard: Turn left" } });
    expect(agent.steer("Too late")).toBe(false);
  });

  test("words that arrive during the model's last answer continue the turn", async () => {
    const { agent } = await openTestAgent(({ lastPrompt }) => ({ text: `Answer to ${lastPrompt}` }));
    let isSteered = false;
    const texts: string[] = [];
    for await (const event of agent.turn("one", { signal: new AbortController().signal })) {
      if (event.type === "status" && !isSteered) isSteered = agent.steer("two");
      if (event.type === "ended") texts.push(event.end.message);
    }
    expect(texts).toEqual(["Answer to two"]);
  });
});
