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

/** What an agent needs to work on files in a sandbox. Its other tools plan, schedule, ask and fetch for a person. */
const tools = ["Bash", "Edit", "Glob", "Grep", "NotebookEdit", "Read", "Task", "TodoWrite", "Write"];

export function claudeArguments(options: OpenOptions, home: string, session: string | undefined): string[] {
  return [
    ...["--print", "--verbose", "--include-partial-messages"],
    ...["--input-format", "stream-json", "--output-format", "stream-json"],
    // Settings of the user or project could run hooks and add servers. "/..." in a prompt is not a command.
    ...["--setting-sources", "", "--strict-mcp-config", "--disable-slash-commands"],
    ...["--mcp-config", JSON.stringify({ mcpServers: teamServers(options) })],
    ...["--tools", tools.join(",")],
    // The run makes commits, not the program.
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
    // The sandbox is the limit, even for root.
    IS_SANDBOX: "1",
    ANTHROPIC_BASE_URL: gateway.baseUrl,
    ANTHROPIC_AUTH_TOKEN: gateway.token,
    // All of the program's model requests go to the run's model.
    ANTHROPIC_MODEL: model,
    ANTHROPIC_SMALL_FAST_MODEL: model,
    ANTHROPIC_DEFAULT_OPUS_MODEL: model,
    ANTHROPIC_DEFAULT_SONNET_MODEL: model,
    ANTHROPIC_DEFAULT_HAIKU_MODEL: model,
    CLAUDE_CODE_SUBAGENT_MODEL: model,
    // The gateway has already retried. These retries bridge its restart.
    CLAUDE_CODE_MAX_RETRIES: "2",
    // Do not repeat a broken stream as a plain request: it would cost twice.
    CLAUDE_CODE_DISABLE_NONSTREAMING_FALLBACK: "1",
    // Save a conversation before the program can die.
    CLAUDE_CODE_EAGER_FLUSH: "1",
    CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: "1",
    CLAUDE_CODE_DISABLE_BACKGROUND_TASKS: "1",
    CLAUDE_CODE_DISABLE_AUTO_MEMORY: "1",
    CLAUDE_CODE_ENABLE_TASKS: "0",
    DISABLE_AUTOUPDATER: "1",
    // Otherwise MCP tools stay hidden until searched for.
    ENABLE_TOOL_SEARCH: "false",
  };
}

function teamServers({
  tools: { command },
}: OpenOptions): Record<string, { command: string; args: readonly string[] }> {
  const [file, ...args] = command;
  return file === undefined ? {} : { [teamServer]: { command: file, args } };
}
