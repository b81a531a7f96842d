import { readFile } from "node:fs/promises";
import { join } from "node:path";
import type { AgentEvent } from "@slipway/contract";
import type { ScriptedProgram } from "@slipway/gateway/scripted";
import { describe, expect, test } from "vitest";
import { goOnPrompt } from "../../system/text.ts";
import { endOf } from "../../testing/end.ts";
import { endedCalls, openTestAgent, takeTurn } from "./testing.ts";

describe("a conversation", () => {
  test("continues after a restart at any saved point and repeats no call that was begun", async () => {
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
      expect(endOf(events)).toMatchObject({ reason: "completed", message: "Done." });
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
    const next = await takeTurn(agent, "What happened?");
    expect(endOf(next)).toMatchObject({ reason: "completed", message: expect.stringContaining("interrupted") });
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
    expect(endOf(events)).toMatchObject({ reason: "completed", message: "first: Remember " });
    expect(longest).toBeLessThan(12_000 * 3.5 * 1.5);
  });

  test("that cannot be saved ends the turn", async () => {
    const { agent } = await openTestAgent(({ step }) => ({ actions: [{ run: `echo ${step}` }] }), {
      save: async () => {
        throw new Error("disk full");
      },
    });
    await expect(takeTurn(agent, "Go")).rejects.toThrow("disk full");
  });

  test("with an invalid state is refused", async () => {
    const opening = openTestAgent(() => ({ text: "" }), { state: { messages: "none" } });
    await expect(opening).rejects.toMatchObject({ code: "internal" });
  });
});
