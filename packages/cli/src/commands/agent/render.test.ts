import type { AgentEvent, RunnerEvent } from "@slipway/contract";
import { expect, it } from "vitest";
import { createRenderer } from "./render.ts";

const plain = (_: string, text: string) => text;
const show = (...events: RunnerEvent[]) => {
  const render = createRenderer(plain);
  return events.map((event, index) => render({ sequence: index + 1, at: 0, event })).join("");
};
const agent = (event: AgentEvent, name = "lead"): RunnerEvent => ({ type: "agent", agent: name, event });
const text = (words: string, name?: string) => agent({ type: "text", channel: "answer", text: words }, name);

it("text flows on, and what is no text has a line of its own", () => {
  const tool = agent({ type: "tool", phase: "start", id: "1", name: "terminal", kind: "execute", input: "ls" });
  expect(show(text("Hel"), text("lo"), tool, text("Bye"))).toBe("Hello\nterminal ls\nBye");
});

it("agents that speak at once are told apart", () => {
  expect(show(text("a", "worker-1"), text("b", "worker-2"), text("c"))).toBe("worker-1  a\nworker-2  b\nc");
});

it("thinking is not shown", () => {
  expect(show(agent({ type: "text", channel: "thinking", text: "hm" }))).toBe("");
});

it.each<[string, RunnerEvent]>([
  ["text", text("\x1b]0;evil\x07")],
  ["a tool's name", agent({ type: "tool", phase: "start", id: "1", name: "\x1b[2J", kind: "other", input: "\x1b[2J" })],
  ["a path", agent({ type: "file_change", path: "a\x1b[2J\nb", action: "added" })],
  ["a note", { type: "note", agent: "worker-1\x1b[2J", text: "\x1b[2J" }],
  ["a task", { type: "task", task: { id: 1, title: "\x1b[2J", status: "pending", owner: "\x1b[2J" } }],
  ["an end", agent({ type: "ended", end: { reason: "crashed", message: "\x1b[2J" } })],
  ["a permission", agent({ type: "permission", id: "1", tool: "\x1b[2J", input: "\x1b[2J" })],
])("%s cannot command the terminal", (_, event) => {
  expect(show(event)).not.toContain("\x1b");
});

it("long input of a tool is cut", () => {
  const event = agent({ type: "tool", phase: "start", id: "1", name: "write", kind: "edit", input: "x".repeat(5000) });
  expect(show(event).length).toBeLessThan(200);
});

it.each([
  ['{"command":"npm test","timeoutSeconds":120}', "npm test"],
  ['{"cmd":["bash","-lc","ls"]}', "bash -lc ls"],
  ['{"files":[{"path":"a.ts","content":"long"},{"path":"b.ts","content":"long"}]}', "a.ts, b.ts"],
  ['{"file_path":"/workspace/c.ts","content":"long"}', "/workspace/c.ts"],
  ['{"tasks":[{"title":"first","details":"x"},{"title":"second"}]}', "first, second"],
  ['{"unknown":1}', '{"unknown":1}'],
  ['{"command":"cut in the mid', '{"command":"cut in the mid'],
])("of a tool's input %s the telling part is shown", (input, shown) => {
  const event = agent({ type: "tool", phase: "start", id: "1", name: "tool", kind: "other", input });
  expect(show(event)).toBe(`tool ${shown}\n`);
});

it.each([
  ["nested too deeply to be written", `{"files":[${"[".repeat(30_000)}${"]".repeat(30_000)}]}`],
  ["nested too deeply to be joined", `{"command":${"[".repeat(30_000)}${"]".repeat(30_000)}}`],
  ["no text and cannot become one", '{"command":[{"toString":1,"valueOf":1}]}'],
])("an input that is %s is shown all the same", (_, input) => {
  const event = agent({ type: "tool", phase: "start", id: "1", name: "tool", kind: "other", input });
  expect(show(event)).toMatch(/^tool .*\n$/);
});
