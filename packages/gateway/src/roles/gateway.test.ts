import { afterEach, describe, expect, test, vi } from "vitest";
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
  return { gateway, roles: stack.use(createRoles({ gateway: within(gateway, gateway.calls.token) })) };
}

/** As a process asks that has the gateway in it. */
function within({ connect }: ScriptedGateway, token: string) {
  return { baseUrl: "http://gateway.internal", token, connect };
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

  test("is reached at its address, too", async () => {
    const { gateway } = await throughGateway({ object: { title: "A shop" } });
    const { baseUrl, calls } = gateway;
    await using roles = createRoles({ gateway: { baseUrl, token: calls.token } });
    expect(await roles.ask(question)).toMatchObject({ value: { title: "A shop" } });
  });

  test("ends its exchange with a question that is given up", async () => {
    const { roles, gateway } = await throughGateway({ fault: "hang" });
    const asking = new AbortController();
    const asked = roles.ask({ ...question, signal: asking.signal });
    await vi.waitFor(() => expect(gateway.asked).toHaveLength(1));
    asking.abort();
    await expect(asked).rejects.toThrow();
    await vi.waitFor(() => expect(gateway.lines).toMatchObject([{ code: "aborted" }]));
  });

  test("answers many questions at once", async () => {
    const text = "word ".repeat(2000);
    const { roles } = await throughGateway({ text }, { budgetMicroUsd: 100_000_000 });
    const answers = await Promise.all(Array.from({ length: 20 }, () => roles.text(question)));
    expect(answers.every((answer) => answer.text === text)).toBe(true);
  });

  test("is refused without money, without the role, and without a token", async () => {
    const poor = await throughGateway({ text: "hello" }, { budgetMicroUsd: 10 });
    await expect(poor.roles.text(question)).rejects.toMatchObject({ code: "budget_exhausted" });
    await expect(poor.roles.text({ ...question, role: "vision" })).rejects.toMatchObject({ code: "role_forbidden" });
    await using stranger = createRoles({ gateway: within(poor.gateway, "nobody") });
    await expect(stranger.text(question)).rejects.toMatchObject({ code: "run_token_invalid" });
    expect(poor.gateway.asked).toHaveLength(0);
  });
});
