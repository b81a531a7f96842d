import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { bindAction } from "./bind.ts";
import type { Action } from "./program.ts";
import { tools } from "./testing/conversation.ts";

const write: Action = { write: "src/a.txt", content: "one\ntwo\n" };
const read: Action = { read: "src/a.txt" };
const run: Action = { run: "ls -l" };

describe("an action is said in the agent's own tools", () => {
  test.each([
    [["Write", "Bash"], write, "Write", { file_path: "/app/src/a.txt", content: "one\ntwo\n" }],
    [["write", "bash"], write, "write", { filePath: "/app/src/a.txt", content: "one\ntwo\n" }],
    [["createOrUpdateFiles"], write, "createOrUpdateFiles", { files: [{ path: "src/a.txt", content: "one\ntwo\n" }] }],
    [["Read"], read, "Read", { file_path: "/app/src/a.txt" }],
    [["read"], read, "read", { filePath: "/app/src/a.txt" }],
    [["readFiles"], read, "readFiles", { paths: ["src/a.txt"] }],
    [["terminal"], read, "terminal", { command: "cat 'src/a.txt'" }],
    [["Bash"], run, "Bash", { command: "ls -l", description: "Run a command" }],
    [["terminal"], run, "terminal", { command: "ls -l" }],
    [["exec_command"], run, "exec_command", { cmd: "ls -l" }],
    [["shell_command"], run, "shell_command", { command: "ls -l" }],
    [["shell"], run, "shell", { command: ["bash", "-lc", "ls -l"] }],
  ])("of %j", (offered, action, name, input) => {
    const call = bindAction(action, tools(...offered), "/app");
    expect({ name: call.name, input: JSON.parse(call.input) }).toEqual({ name, input });
  });

  test("a tool that takes free text gets the patch itself", () => {
    const patch = "*** Begin Patch\n*** Add File: src/a.txt\n+one\n+two\n*** End Patch\n";
    const [tool] = tools("apply_patch");
    if (!tool) throw new Error("no tool");
    expect(bindAction(write, [{ ...tool, freeText: true }], undefined)).toEqual({ name: "apply_patch", input: patch });
    expect(JSON.parse(bindAction(write, [tool], undefined).input)).toEqual({ input: patch });
  });

  test("a shell writes every byte where there is no tool for files", () => {
    const directory = mkdtempSync(join(tmpdir(), "bind-"));
    const content = "it's $HOME `id` \\n %s\n\n'quoted'";
    const { input } = bindAction({ write: "a dir/it's.txt", content }, tools("terminal"), undefined);
    execFileSync("bash", ["-c", JSON.parse(input).command], { cwd: directory });
    expect(readFileSync(join(directory, "a dir/it's.txt"), "utf8")).toBe(content);
    rmSync(directory, { recursive: true });
  });

  test.each(["add_tasks", "mcp__slipway__add_tasks", "slipway_add_tasks"])("add_tasks is found as %s", (name) => {
    const action = { tool: "add_tasks", input: { tasks: [] } };
    expect(bindAction(action, tools("never_add_tasks_x", name), undefined)).toEqual({ name, input: '{"tasks":[]}' });
  });

  test("a word that only ends alike is not the tool", () => {
    expect(() => bindAction({ tool: "run", input: {} }, tools("prune", "overrun"), undefined)).toThrow(
      expect.objectContaining({ code: "invalid_request", message: expect.stringContaining("prune, overrun") }),
    );
  });

  test("an action that nothing offered can do is an error that names what is offered", () => {
    expect(() => bindAction(run, tools("Read"), undefined)).toThrow(
      expect.objectContaining({
        code: "invalid_request",
        message: "no offered tool can do this: running a command; offered are: Read",
      }),
    );
  });
});
