import { describe, expect, test } from "vitest";
import { isSideCall } from "./side-call.ts";
import { asProgramsSee, called, result, tools, user } from "./testing/conversation.ts";

describe("what a program sees", () => {
  test("the step is the number of tool results since the last prompt", () => {
    const work = [
      user("Build it"),
      called("1", "Bash"),
      user(result("1", "a")),
      called("2", "Bash"),
      user(result("2", "b")),
    ];
    expect(asProgramsSee({ messages: work })).toMatchObject({ step: 2, prompt: "Build it", lastPrompt: "Build it" });
    expect(asProgramsSee({ messages: [...work, user("And now?")] })).toMatchObject({
      step: 0,
      prompt: "Build it",
      lastPrompt: "And now?",
    });
  });

  test("a user's words beside a tool result are a prompt", () => {
    const messages = [user("Build it"), called("1", "Bash"), user(result("1", "a"), "Stop that")];
    expect(asProgramsSee({ messages })).toMatchObject({ step: 0, lastPrompt: "Stop that" });
  });

  test("what an agent adds in tags is no prompt", () => {
    const environment = "<environment_context>\n<cwd>/workspace</cwd>\n</environment_context>";
    const reminder = "<system-reminder>Be brief.</system-reminder>\n";
    const messages = [
      user(environment),
      user("# AGENTS.md instructions for /workspace\n\nBe kind."),
      user(reminder, "Build it", "soon"),
      called("1", "Bash"),
      user(result("1", "a"), reminder),
    ];
    expect(asProgramsSee({ messages })).toMatchObject({
      step: 1,
      prompt: "Build it\nsoon",
      lastPrompt: "Build it\nsoon",
      workdir: "/workspace",
    });
  });

  test.each([
    "You work in a sandbox.\n - Working directory: /home/dev/app\n",
    "Primary working directory: `/home/dev/app`",
    "<env>\n  Working directory: /home/dev/app\n</env>",
  ])("the working directory is found in %j", (system) => {
    expect(asProgramsSee({ system }).workdir).toBe("/home/dev/app");
  });

  test("prose about working directories names none", () => {
    const system = "The working directory persists between commands; stdin/stdout do not.";
    expect(asProgramsSee({ system }).workdir).toBeUndefined();
  });

  test("the last results carry the names of their tools", () => {
    const messages = [
      user("x"),
      called("1", "Read"),
      user(result("1", "a")),
      called("2", "Bash"),
      user(result("2", "b", true)),
    ];
    expect(asProgramsSee({ messages }).results).toEqual([{ tool: "Bash", text: "b", isError: true }]);
  });

  test("a demanded tool is an answer's schema, not an offer", () => {
    const answer = { name: "json", description: "", schema: { type: "object", required: [] } };
    for (const toolChoice of ["required", { name: "json" }] as const) {
      const request = asProgramsSee({ tools: [answer], toolChoice });
      expect(request).toMatchObject({ tools: [], answerSchema: { name: "json", schema: answer.schema } });
    }
  });

  test("a call without tools, or that forbids them, is a side call", () => {
    expect(isSideCall(asProgramsSee({ tools: tools("Bash") }))).toBe(false);
    expect(isSideCall(asProgramsSee({ tools: tools("Bash"), toolChoice: "none" }))).toBe(true);
    expect(isSideCall(asProgramsSee())).toBe(true);
  });

  test("the last part of a model's name names the program", () => {
    expect(asProgramsSee({ model: "scripted/demo" }).model).toBe("demo");
    expect(asProgramsSee({ model: "demo" }).model).toBe("demo");
  });

  test("an empty conversation has an empty prompt", () => {
    expect(asProgramsSee({ messages: [] })).toMatchObject({ prompt: "", lastPrompt: "", step: 0, results: [] });
  });
});
