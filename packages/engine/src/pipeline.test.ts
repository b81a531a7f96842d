import { buildSettingsSchema } from "@slipway/contract";
import { createRoles } from "@slipway/gateway/roles";
import { type ScriptedProgram, startScriptedModel } from "@slipway/gateway/scripted";
import { afterEach, expect, test } from "vitest";
import { decide } from "./build/decide.ts";
import { beginBuild } from "./build/state.ts";
import { createPipeline, type Pipeline } from "./pipeline.ts";
import type { RepositoryReader } from "./ports/repository.ts";
import { checks, draft, dummies, intent, request, tasks } from "./testing/answers.ts";

let stack = new AsyncDisposableStack();
afterEach(async () => {
  await stack.disposeAsync();
  stack = new AsyncDisposableStack();
});

const repository: RepositoryReader = {
  summarize: async () => ({ files: ["src/app.ts"], notes: "An app", routes: ['app.get("/items")'] }),
  diagnose: async () => ({ problems: [] }),
  look: async () => ({ pages: [], unseen: "It does not start" }),
};

/** A pipeline whose model is the program, over HTTP. */
async function pipelineOf(
  program: ScriptedProgram,
  options: { signal?: AbortSignal } = {},
): Promise<{ pipeline: Pipeline; prompts: string[] }> {
  const prompts: string[] = [];
  const model = stack.use(
    await startScriptedModel({
      programs: { intent: program, plan: program },
      listen: { host: "127.0.0.1", port: 0 },
      onRequest: ({ system, prompt }) => void prompts.push(`${system}\n${prompt}`),
    }),
  );
  const models = stack.use(createRoles({ gateway: { baseUrl: model.baseUrl, token: "run-token" } }));
  return { pipeline: createPipeline({ models, dummies, repository, clock: { now: () => 7 }, ...options }), prompts };
}

/** Answers what it is asked for, by the fields that the schema wants. */
const builder: ScriptedProgram = ({ answerSchema }) => {
  const schema = JSON.stringify(answerSchema);
  if (schema.includes("coreValue")) return { object: draft };
  return { object: schema.includes("expectedFiles") ? { tasks } : { checks } };
};

test("a request becomes a locked intent, its checks, a plan and a build that can begin", async () => {
  const { pipeline, prompts } = await pipelineOf(builder);
  const { open, start } = await pipeline.draft(request, "feature");
  const { locked, checks: compiled } = await pipeline.lock(open);
  const plan = await pipeline.plan({ locked, start });
  expect(locked).toMatchObject({ status: "locked", intent, lockedAtMs: 7 });
  expect(compiled).toEqual({ intentHash: locked.hash, checks });
  expect(plan).toMatchObject({ mode: "feature", intentHash: locked.hash });
  const build = beginBuild(plan, buildSettingsSchema.parse({}), 7);
  expect(decide(build, 7)).toMatchObject([{ type: "start-attempt", task: "setup", attempt: 1, level: null }]);
  expect(prompts).toHaveLength(3);
  expect(JSON.stringify(checks)).toContain("Socks");
  // What proves the intent is told to nobody.
  for (const prompt of prompts) expect(prompt).not.toContain("Socks");
});

test("nothing is locked when no check can be made", async () => {
  const program: ScriptedProgram = (asked) => ({
    ...(JSON.stringify(asked.answerSchema).includes("coreValue") ? builder(asked) : { text: "no checks" }),
  });
  const { pipeline } = await pipelineOf(program);
  const { open } = await pipeline.draft(request, "new");
  await expect(pipeline.lock(open)).rejects.toMatchObject({ code: "invalid_answer" });
});

test("a model that answers nonsense, and one that is cut off, are told by their codes", async () => {
  const nonsense = await pipelineOf(() => ({ text: "I would rather write a poem." }));
  await expect(nonsense.pipeline.draft(request, "new")).rejects.toMatchObject({ code: "invalid_answer" });
  const cut = await pipelineOf(() => ({ text: "a b c", fault: "cut" }));
  await expect(cut.pipeline.draft(request, "new")).rejects.toMatchObject({ code: "stream_truncated" });
});

test("a caller that gives up is told so", async () => {
  const { pipeline, prompts } = await pipelineOf(builder, { signal: AbortSignal.abort() });
  await expect(pipeline.draft(request, "new")).rejects.toMatchObject({ code: "aborted" });
  expect(prompts).toEqual([]);
});
