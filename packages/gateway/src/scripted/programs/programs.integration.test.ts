import { mkdir, mkdtemp, readdir, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Message } from "../../dialects/conversation.ts";
import { act } from "../testing/act.ts";
import { asProgramsSee, called, result, tools, user } from "../testing/conversation.ts";
import { demo } from "./demo.ts";
import { echo } from "./echo.ts";
import { loop } from "./loop.ts";
import { team } from "./team.ts";

let directory: string;
beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), "programs-"));
});
afterAll(() => rm(directory, { recursive: true }));

describe("demo", () => {
  test("writes a program whose tests pass, whatever it is asked for", async () => {
    expect(await act(demo, "A shop for boats", directory)).toMatch(/its two tests pass/);
    expect((await readdir(directory)).sort()).toEqual(["hello.mjs", "hello.test.mjs"]);
  });

  test("does not claim tests that failed", async () => {
    const blocked = join(directory, "blocked");
    await mkdir(join(blocked, "hello.mjs"), { recursive: true });
    expect(await act(demo, "Anything", blocked)).toMatch(/do not pass/);
  });

  test("answers a side call without a fault that is meant for the work", async () => {
    const messages = [user("[fault:hang] x")];
    expect(await demo(asProgramsSee({ messages }))).toEqual({ text: "A small task" });
    expect(await demo(asProgramsSee({ messages, tools: tools("Bash") }))).toMatchObject({ fault: "hang" });
  });
});

describe("echo", () => {
  test("says what it was told, or gives an object that fits", async () => {
    expect(await echo(asProgramsSee({ messages: [user("hello")] }))).toEqual({ text: "hello" });
    const answerSchema = {
      name: "answer",
      schema: { type: "object", required: ["ok"], properties: { ok: { type: "boolean" } } },
    };
    expect(await echo(asProgramsSee({ answerSchema }))).toEqual({ object: { ok: false } });
  });
});

describe("loop", () => {
  test("never comes to an end", async () => {
    await expect(act(loop, "Go", directory)).rejects.toThrow("not done");
  });
});

describe("team", () => {
  const forWorkers = ["terminal", "mcp__slipway__write_note", "mcp__slipway__read_notes"];
  const lead = (messages: Message[]) =>
    team(asProgramsSee({ messages, tools: tools(...forWorkers, "mcp__slipway__add_tasks") }));
  const worker = (messages: Message[]) => team(asProgramsSee({ messages, tools: tools(...forWorkers) }));

  test("a lead hands out tasks, and closes when it is asked again", async () => {
    const messages = [user("Be polite")];
    expect(await lead(messages)).toMatchObject({ actions: [{ tool: "add_tasks" }] });
    messages.push(called("1", "mcp__slipway__add_tasks"), user(result("1", "added")));
    expect(await lead(messages)).toEqual({ text: "The tasks are handed out." });
    messages.push(user("The workers are done: 1 Write the greeting"));
    expect(await lead(messages)).toMatchObject({ actions: [{ tool: "read_notes" }] });
    messages.push(called("2", "mcp__slipway__read_notes"), user(result("2", "greeting.txt is written")));
    expect(await lead(messages)).toEqual({ text: "All 2 tasks are done." });
  });

  test("a worker does its task and leaves a note", async () => {
    const messages = [user("Your task: Write the farewell")];
    expect(await worker(messages)).toMatchObject({ actions: [{ write: "farewell.txt" }] });
    messages.push(called("1", "terminal"), user(result("1", "")));
    expect(await worker(messages)).toMatchObject({ actions: [{ tool: "write_note" }] });
    messages.push(called("2", "mcp__slipway__write_note"), user(result("2", "")));
    expect(await worker(messages)).toEqual({ text: "Done: farewell.txt" });
  });
});
