import { afterEach, describe, expect, test } from "vitest";
import { z } from "zod";
import type { Turn } from "../scripted/index.ts";
import { type ScriptedGateway, startScriptedGateway } from "../scripted/testing/scripted-gateway.ts";
import { createRoles, type Roles } from "./roles.ts";

const schema = z.object({ title: z.string() });
const question = { role: "plan", instructions: "You plan.", prompt: "A shop for boats", schema } as const;

let stack = new AsyncDisposableStack();
afterEach(async () => {
  await stack.disposeAsync();
  stack = new AsyncDisposableStack();
});

type Options = Partial<Parameters<typeof startScriptedGateway>[0]>;

async function throughGateway(turn: Turn, options: Options = {}): Promise<{ roles: Roles; gateway: ScriptedGateway }> {
  const defaults = { program: () => turn, roles: ["plan", "judge"] } as const;
  const gateway = stack.use(await startScriptedGateway({ ...defaults, ...options }));
  const { baseUrl, calls } = gateway;
  return { gateway, roles: stack.use(createRoles({ gateway: { baseUrl, token: calls.token } })) };
}

describe("a role behind the gateway", () => {
  test.each(["anthropic", "chat", "responses"] as const)(
    "answers from an endpoint that speaks %s",
    async (endpoint) => {
      const usage = { input: 90, output: 7, cacheRead: 10, cacheWrite: 0 };
      const { roles, gateway } = await throughGateway({ object: { title: "A shop" }, usage }, { endpoint });
      expect(await roles.ask(question)).toEqual({ value: { title: "A shop" }, usage, tries: 1 });
      expect(gateway.asked).toMatchObject([{ model: "program", answerSchema: { schema: { required: ["title"] } } }]);
      expect(gateway.lines).toMatchObject([{ role: "plan", end: "complete", usage, microUsd: 90 + 7 * 5 + 1 }]);
    },
  );

  test("pays for each try of an answer that has to be asked for again", async () => {
    const { roles, gateway } = await throughGateway({ text: "no plan", usage: { input: 10, output: 1 } });
    await expect(roles.ask(question)).rejects.toMatchObject({ code: "invalid_answer", text: "no plan" });
    expect(await gateway.calls.balance()).toMatchObject({ spentMicroUsd: 3 * 15, reservedMicroUsd: 0 });
  });

  test.each<[string, Turn, string]>([
    ["a refusal", { fault: "refusal" }, "answer_refused"],
    ["a cut stream", { text: "a b c", fault: "cut" }, "stream_truncated"],
    ["a clean end in the middle", { text: "a b c", fault: "endEarly" }, "stream_truncated"],
    ["an error in the middle", { text: "a b c", fault: "failure" }, "model_overloaded"],
    ["an endpoint that hangs", { fault: "hang" }, "model_timeout"],
    ["an endpoint that falls silent", { text: "a b c", fault: "hangStream" }, "model_timeout"],
    ["a refused key", { fault: { status: 401 } }, "model_key_refused"],
    ["too many requests", { fault: { status: 429, retryAfterMs: 0 } }, "model_rate_limited"],
    ["a broken connection", { fault: "reset" }, "model_unreachable"],
  ])("tells %s by its code, and asks no second time", async (_, turn, code) => {
    const timeouts = { firstByteMs: 1000, idleMs: 1000 };
    const { roles, gateway } = await throughGateway(turn, code === "model_timeout" ? { timeouts } : {});
    await expect(roles.ask(question)).rejects.toMatchObject({ name: "SlipwayError", code });
    expect(gateway.lines).toHaveLength(1);
    expect((await gateway.calls.balance()).reservedMicroUsd).toBe(0);
  });

  test("is refused without money, without the role, and without a token", async () => {
    const poor = await throughGateway({ text: "hello" }, { budgetMicroUsd: 10 });
    await expect(poor.roles.text(question)).rejects.toMatchObject({ code: "budget_exhausted" });
    await expect(poor.roles.text({ ...question, role: "vision" })).rejects.toMatchObject({ code: "role_forbidden" });
    await using stranger = createRoles({ gateway: { baseUrl: poor.gateway.baseUrl, token: "nobody" } });
    await expect(stranger.text(question)).rejects.toMatchObject({ code: "run_token_invalid" });
    expect(poor.gateway.asked).toHaveLength(0);
  });
});
