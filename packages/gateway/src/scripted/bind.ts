import { isAbsolute, posix } from "node:path";
import { SlipwayError } from "@slipway/contract";
import type { ToolDefinition } from "../dialects/conversation.ts";
import type { Action } from "./program.ts";

export interface ToolCall {
  readonly name: string;
  /** JSON text, or plain text for a free-text tool. */
  readonly input: string;
}

/** Turns an action into a call of a tool that the agent offers. */
export function bindAction(action: Action, tools: readonly ToolDefinition[], workdir: string | undefined): ToolCall {
  const call = bind(action, tools, workdir);
  if (call) return call;
  const offered = tools.map((tool) => tool.name).join(", ") || "none";
  throw new SlipwayError(
    "invalid_request",
    `no offered tool can do this: ${describe(action)}; offered are: ${offered}`,
  );
}

type Binding<A> = readonly [tool: string, input: (action: A, workdir: string | undefined) => Record<string, unknown>];
type Write = Extract<Action, { write: string }>;
type Read = Extract<Action, { read: string }>;
type Run = Extract<Action, { run: string }>;

/** Each agent's own tools. The first one offered is used. */
const writers: readonly Binding<Write>[] = [
  ["Write", ({ write, content }, workdir) => ({ file_path: fromWorkdir(write, workdir), content })],
  ["write_file", ({ write, content }, workdir) => ({ file_path: fromWorkdir(write, workdir), content })],
  ["write", ({ write, content }, workdir) => ({ filePath: fromWorkdir(write, workdir), content })],
  ["createOrUpdateFiles", ({ write, content }) => ({ files: [{ path: write, content }] })],
  ["apply_patch", (action) => ({ input: patchThatAdds(action) })],
];
const readers: readonly Binding<Read>[] = [
  ["Read", ({ read }, workdir) => ({ file_path: fromWorkdir(read, workdir) })],
  ["read_file", ({ read }, workdir) => ({ file_path: fromWorkdir(read, workdir) })],
  ["read", ({ read }, workdir) => ({ filePath: fromWorkdir(read, workdir) })],
  ["readFiles", ({ read }) => ({ paths: [read] })],
];
const shells: readonly Binding<Run>[] = [
  ["Bash", ({ run }) => ({ command: run, description: "Run a command" })],
  ["run_shell_command", ({ run }) => ({ command: run, description: "Run a command" })],
  ["bash", ({ run }) => ({ command: run, description: "Run a command" })],
  ["terminal", ({ run }) => ({ command: run })],
  ["exec_command", ({ run }) => ({ cmd: run })],
  ["shell_command", ({ run }) => ({ command: run })],
  ["shell", ({ run }) => ({ command: ["bash", "-lc", run] })],
];

function bind(action: Action, tools: readonly ToolDefinition[], workdir: string | undefined): ToolCall | undefined {
  if ("write" in action)
    return bindFirst(writers, action, tools, workdir) ?? bind(writtenByShell(action), tools, workdir);
  if ("read" in action) {
    const byShell = { run: `cat ${quoted(action.read)}` };
    return bindFirst(readers, action, tools, workdir) ?? bind(byShell, tools, workdir);
  }
  if ("run" in action) return bindFirst(shells, action, tools, workdir);
  const tool = toolNamed(action.tool, tools);
  return tool && callOf(tool, action.input);
}

function bindFirst<A>(
  bindings: readonly Binding<A>[],
  action: A,
  tools: readonly ToolDefinition[],
  workdir: string | undefined,
): ToolCall | undefined {
  for (const [name, input] of bindings) {
    const tool = tools.find((offered) => offered.name === name);
    if (tool) return callOf(tool, input(action, workdir));
  }
  return undefined;
}

function toolNamed(name: string, tools: readonly ToolDefinition[]): ToolDefinition | undefined {
  return (
    tools.find((tool) => tool.name === name) ??
    tools.find((tool) => tool.name.endsWith(name) && /[_.:/-]/.test(tool.name.at(-name.length - 1) ?? ""))
  );
}

/** A free-text tool gets the single text of the input. */
function callOf(tool: ToolDefinition, input: Readonly<Record<string, unknown>>): ToolCall {
  const plain = tool.freeText && typeof input["input"] === "string" ? input["input"] : undefined;
  return { name: tool.name, input: plain ?? JSON.stringify(input) };
}

function patchThatAdds({ write, content }: Write): string {
  const lines = content.replace(/\n$/, "").split("\n");
  return ["*** Begin Patch", `*** Add File: ${write}`, ...lines.map((line) => `+${line}`), "*** End Patch", ""].join(
    "\n",
  );
}

function writtenByShell({ write, content }: Write): Run {
  return { run: `mkdir -p -- ${quoted(posix.dirname(write))} && printf %s ${quoted(content)} > ${quoted(write)}` };
}

function quoted(text: string): string {
  return `'${text.replaceAll("'", `'\\''`)}'`;
}

/** Some agents require absolute paths. */
function fromWorkdir(path: string, workdir: string | undefined): string {
  return workdir === undefined || isAbsolute(path) ? path : posix.join(workdir, path);
}

function describe(action: Action): string {
  if ("write" in action) return `writing ${action.write}`;
  if ("read" in action) return `reading ${action.read}`;
  return "run" in action ? "running a command" : action.tool;
}
