import { mkdtemp, readdir, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, it, vi } from "vitest";
import { type Bin, openBin } from "../../testing/bin.ts";
import { type } from "../../testing/type.ts";

// Longer than a terminal waits.
vi.setConfig({ testTimeout: 300_000 });

let bin: Bin;
beforeAll(async () => {
  bin = await openBin({ NO_COLOR: "1", TERM: "xterm" });
});
afterAll(() => bin?.[Symbol.asyncDispose]());

it.each<[string, string, string, string[]]>([
  ["yes applies them", "y\\r", "applied to", ["hello.mjs", "hello.test.mjs"]],
  ["no keeps them as a file", "n\\r", "not applied; changes saved in", []],
  ["Ctrl-C keeps them as a file", "\\x03", "not applied; changes saved in", []],
])("at a terminal it is asked whether to apply the changes: %s", async (_, typed, told, files) => {
  const project = await mkdtemp(join(tmpdir(), "agent-run-"));
  const words = ["agent", "run", "--dir", project, "--model", "scripted/demo", "Say hello"];
  const { shown, raw: _raw, ...end } = await type(bin, words, [["Apply these changes", typed]]);
  expect(end).toEqual({ code: 0, restored: true, left: 0 });
  expect(shown).toContain(told);
  expect((await readdir(project)).sort()).toEqual(files);
  await rm(project, { recursive: true });
});
