import { join } from "node:path";
import { type OpenOptions, teamServer } from "../driver.ts";
import type { ProgramSource } from "../program/find.ts";

export const claudeCode: ProgramSource = {
  directory: "claude-code",
  files: [
    "claude",
    `node_modules/@anthropic-ai/claude-code-linux-${process.arch}/claude`,
    // What npm links there is a stub until the package's install script has run.
    `node_modules/@anthropic-ai/claude-code/node_modules/@anthropic-ai/claude-code-linux-${process.arch}/claude`,
  ],
  command: "claude",
  packages: ["@anthropic-ai/claude-code"],
};

export const instructionsFile = "instructions.md";

/** What an agent needs to work on files in a sandbox. The rest of its tools plan, schedule, ask and fetch for a person. */
const tools = ["Bash", "Edit", "Glob", "Grep", "NotebookEdit", "Read", "Task", "TodoWrite", "Write"];

export function claudeArguments(options: OpenOptions, home: string, session: string | undefined): string[] {
  return [
    ...["--print", "--verbose", "--include-partial-messages"],
    ...["--input-format", "stream-json", "--output-format", "stream-json"],
    // Settings of the user or the project could run hooks and name other servers; "/..." in a prompt is no command.
    ...["--setting-sources", "", "--strict-mcp-config", "--disable-slash-commands"],
    ...["--mcp-config", JSON.stringify({ mcpServers: teamServers(options) })],
    ...["--tools", tools.join(",")],
    // Commits are the run's, not the program's.
    ...["--settings", JSON.stringify({ attribution: { commit: "", pr: "" } })],
    ...["--model", options.model, "--max-turns", String(options.limits.maxSteps)],
    ...["--append-system-prompt-file", join(home, instructionsFile)],
    ...(options.permissions === "allow"
      ? ["--dangerously-skip-permissions"]
      : ["--permission-mode", "default", "--permission-prompt-tool", "stdio"]),
    ...(session === undefined ? [] : ["--resume", session]),
  ];
}

export function claudeEnvironment(options: OpenOptions): Record<string, string> {
  const { model, gateway } = options;
  return {
    // The sandbox is the limit, also for root.
    IS_SANDBOX: "1",
    ANTHROPIC_BASE_URL: gateway.baseUrl,
    ANTHROPIC_AUTH_TOKEN: gateway.token,
    // Whatever the program asks a model for, it asks the one model of this run.
    ANTHROPIC_MODEL: model,
    ANTHROPIC_SMALL_FAST_MODEL: model,
    ANTHROPIC_DEFAULT_OPUS_MODEL: model,
    ANTHROPIC_DEFAULT_SONNET_MODEL: model,
    ANTHROPIC_DEFAULT_HAIKU_MODEL: model,
    CLAUDE_CODE_SUBAGENT_MODEL: model,
    // The gateway has tried again already; these tries bridge its own restart.
    CLAUDE_CODE_MAX_RETRIES: "2",
    // A broken stream is not asked for a second time in another way: it would be paid twice.
    CLAUDE_CODE_DISABLE_NONSTREAMING_FALLBACK: "1",
    // A conversation is on disk before its program can die.
    CLAUDE_CODE_EAGER_FLUSH: "1",
    CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: "1",
    CLAUDE_CODE_DISABLE_BACKGROUND_TASKS: "1",
    CLAUDE_CODE_DISABLE_AUTO_MEMORY: "1",
    CLAUDE_CODE_ENABLE_TASKS: "0",
    DISABLE_AUTOUPDATER: "1",
    // Otherwise tools of MCP servers stay hidden until they are searched for.
    ENABLE_TOOL_SEARCH: "false",
  };
}

function teamServers({
  tools: { command },
}: OpenOptions): Record<string, { command: string; args: readonly string[] }> {
  const [file, ...args] = command;
  return file === undefined ? {} : { [teamServer]: { command: file, args } };
}
