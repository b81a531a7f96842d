import { expect, test } from "vitest";
import type { DialectName } from "../dialects/dialect.ts";
import { normalise } from "./normalise.ts";

const endpoint = {
  provider: "test",
  baseUrl: "",
  dialects: ["anthropic"] as const,
  key: undefined,
  keyVariable: "TEST_API_KEY",
};

function asked(dialect: DialectName, messages: readonly object[]): string {
  return normalise({ endpoint, dialect, body: Buffer.from(JSON.stringify({ model: "m", messages })) });
}

/** A request that has what a command wrote. */
function withOutput(text: string): string {
  return asked("anthropic", [
    { role: "user", content: [{ type: "tool_result", tool_use_id: "toolu_1", content: text }] },
  ]);
}

function withPrompt(text: string): string {
  return asked("anthropic", [{ role: "user", content: text }]);
}

test.each([
  [
    "a duration of node --test",
    "✔ it adds (1.234567ms)\nℹ duration_ms 52.123",
    "✔ it adds (0.9ms)\nℹ duration_ms 1052",
  ],
  [
    "a duration in TAP",
    "ok 1 - it adds\n  ---\n  duration_ms: 1.25\n",
    "ok 1 - it adds\n  ---\n  duration_ms: 100.3\n",
  ],
  ["a duration of another test runner", "  ✓ adds (5 ms)\n3 passing (1s)", "  ✓ adds (12 ms)\n3 passing (2.5s)"],
  ["a duration of Codex", "Wall time: 0.0512 seconds\nOutput:\nhello", "Wall time: 1.2 seconds\nOutput:\nhello"],
  ["what Codex counts", "Chunk ID: 1a2b3c\nOriginal token count: 20", "Chunk ID: 4d5e6f\nOriginal token count: 21"],
  ["the commit of git commit", "[main 1a2b3c4] Add it\n 1 file changed", "[main 1234567] Add it\n 1 file changed"],
  ["the first commit", "[main (root-commit) 1a2b3c4] Add it", "[main (root-commit) ffffff0] Add it"],
  ["commits of git log", "1a2b3c4 Add it\n0abcdef12 Begin", "9f8e7d6 Add it\n12abcde34 Begin"],
  ["commits of git merge", "Updating 1a2b3c4..5d6e7f8\nFast-forward", "Updating 1234567..abcdefa\nFast-forward"],
  ["the commit of git reset", "HEAD is now at 1a2b3c4 Add it", "HEAD is now at 7654321 Add it"],
  ["dates of git log", "Date:   Mon Nov 16 13:36:30 2026 +0000", "Date:   Tue Jan 5 01:02:03 2027 +0100"],
  ["the date of date", "Mon Nov 16 13:36:30 UTC 2026", "Tue Jan  5 01:02:03 UTC 2027"],
  ["a date with its time", "at\n2026-11-16 13:36:30 +0000", "at\n2027-01-05 01:02:03 +0100"],
  ["dates of ls", "-rw-r--r-- 1 me me 12 Nov 16 13:36 a", "-rw-r--r-- 1 me me 12 Jan  5 01:02 a"],
])("%s that a command writes is left out", (_, one, other) => {
  expect(withOutput(one)).toBe(withOutput(other));
});

test.each([
  ["a name in brackets", "[main 1a2b3c4] Add it", "[main 1a2b3c4] Mend it"],
  ["how many tests passed", "ℹ pass 2\nℹ duration_ms 5.1", "ℹ pass 1\nℹ duration_ms 5.1"],
  ["a number at the beginning of a line", "1234567 bytes", "7654321 bytes"],
  ["a word of the letters a to f", "defaced walls", "effaced walls"],
  ["a hash that is not a commit's", "index 1a2b3c4..5d6e7f8 100644", "index 1a2b3c4..9d6e7f8 100644"],
  ["a colour", "color: #1a2b3c4d;", "color: #1a2b3c4e;"],
  ["a duration in code", "setTimeout(5)", "setTimeout(6)"],
  ["a duration in a sentence", "it waits for 5ms", "it waits for 6ms"],
  ["the size of a file", "-rw-r--r-- 1 me me 12 Nov 16 13:36 a", "-rw-r--r-- 1 me me 13 Nov 16 13:36 a"],
])("%s that a command writes counts", (_, one, other) => {
  expect(withOutput(one)).not.toBe(withOutput(other));
});

test.each([
  ["fco_01a1e4af-2c10-75d3-8013-8b04e772ba57", "fco_01a1e4af-9a76-77d0-a4a6-75eb979503fe"],
  ["/var/tmp/slipway-run/1a207c53141a186e/homes/lead", "/var/tmp/slipway-run/41c710af8057f075/homes/lead"],
])("%s is the same as %s", (one, other) => {
  expect(withPrompt(one)).toBe(withPrompt(other));
});

test.each([
  ["a duration", "Give up late (5s)", "Give up late (10s)"],
  ["a commit", "1a2b3c4 is to be undone", "9f8e7d6 is to be undone"],
])("%s that the user writes counts", (_, one, other) => {
  expect(withPrompt(one)).not.toBe(withPrompt(other));
});

test.each<[DialectName, (text: string) => object]>([
  ["anthropic", (text) => ({ role: "user", content: [{ type: "tool_result", content: [{ type: "text", text }] }] })],
  ["chat", (text) => ({ role: "tool", tool_call_id: "call_1", content: text })],
  ["responses", (text) => ({ type: "function_call_output", call_id: "call_1", output: text })],
  ["responses", (text) => ({ type: "custom_tool_call_output", call_id: "call_1", output: text })],
])("what a command writes is found in the dialect %s", (dialect, message) => {
  expect(asked(dialect, [message("passed (5ms)")])).toBe(asked(dialect, [message("passed (6ms)")]));
});
