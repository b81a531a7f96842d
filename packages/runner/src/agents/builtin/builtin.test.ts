import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "vitest";
import { openTestAgent, takeTurn } from "./testing.ts";

test("the agent writes a file, runs a command and says what it did", async () => {
  const { agent, workdir } = await openTestAgent(({ step }) => {
    if (step === 0) return { text: "I write.", actions: [{ write: "a/hello.txt", content: "hello\n" }] };
    if (step === 1) return { actions: [{ run: "cat a/hello.txt; echo oops >&2; exit 3" }] };
    return { text: "All done." };
  });
  const events = await takeTurn(agent, "Write hello");
  expect(await readFile(join(workdir, "a/hello.txt"), "utf8")).toBe("hello\n");
  expect(events.filter((event) => event.type === "tool" && event.phase === "end")).toMatchObject([
    { name: "createOrUpdateFiles", kind: "edit", ok: true },
    { name: "terminal", kind: "execute", ok: false, output: "hello\noops\n\n[exit code 3]" },
  ]);
  expect(events.at(-1)).toEqual({ type: "done", outcome: "completed", text: "All done." });
});
