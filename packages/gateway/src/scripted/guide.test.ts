import { readFile } from "node:fs/promises";
import { describe, expect, test } from "vitest";
import { asProgramsSee, called, result, tools, user } from "./testing/conversation.ts";
import { haiku } from "./testing/haiku.ts";
import { firstTurn } from "./testing/serve-haiku.ts";

describe("the guide's example", () => {
  test.each(["haiku.ts", "serve-haiku.ts"])("%s is what the guide shows", async (file) => {
    const guide = await readFile(new URL("../../../../docs/guides/write-a-scripted-model.md", import.meta.url), "utf8");
    const source = await readFile(new URL(`testing/${file}`, import.meta.url), "utf8");
    expect(guide).toContain(`\`\`\`ts\n${source}\`\`\`\n`);
  });

  test("is served as a model", async () => {
    expect(await firstTurn()).toMatchObject({
      stop_reason: "tool_use",
      content: [
        { type: "text", text: "I write a haiku." },
        { type: "tool_use", name: "Bash", input: { command: expect.stringContaining("A frog jumps") } },
      ],
    });
  });

  test("says what its command counted", async () => {
    const messages = (count: string) => [
      user("Write something"),
      called("1", "Write"),
      user(result("1", "written")),
      called("2", "Bash"),
      user(result("2", count)),
    ];
    const answerTo = (count: string) => haiku(asProgramsSee({ tools: tools("Bash"), messages: messages(count) }));
    expect(await answerTo("3 haiku.txt\n")).toEqual({ text: "The haiku has its three lines." });
    expect(await answerTo("0 haiku.txt\n")).toEqual({ text: "Something is wrong with the haiku." });
  });

  test("answers a side call without beginning its work", async () => {
    expect(await haiku(asProgramsSee())).toEqual({ text: "A small task" });
  });
});
