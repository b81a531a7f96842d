import { type OpenOptions, teamServer } from "../driver.ts";
import type { AcpAgent } from "./agent.ts";

const [askFile, keepFile] = ["ask.toml", "keep-sessions.mjs"];

/** Gemini CLI speaks the protocol itself, and runs on the runner's Node. */
export const gemini: AcpAgent = {
  name: "gemini",
  program: {
    directory: "gemini",
    files: ["bundle/gemini.js", "node_modules/@google/gemini-cli/bundle/gemini.js"],
    command: "gemini",
    packages: ["@google/gemini-cli"],
  },
  launch: (options, { file, home }) => ({
    argv: [
      ...([process.execPath, "--import", `${home}/${keepFile}`, file] as const),
      ...["--acp", "--model", options.model, "--allowed-mcp-server-names", teamServer],
      ...(options.permissions === "allow"
        ? ["--approval-mode", "yolo"]
        : ["--approval-mode", "default", "--admin-policy", `${home}/${askFile}`]),
    ],
    env: {
      GOOGLE_GEMINI_BASE_URL: options.gateway.baseUrl,
      GEMINI_API_KEY: options.gateway.token,
      // In an untrusted directory it accepts no tool servers, not even the team's.
      GEMINI_CLI_TRUST_WORKSPACE: "true",
      GEMINI_CLI_NO_RELAUNCH: "true",
      NO_BROWSER: "true",
    },
    files: {
      ".gemini/settings.json": JSON.stringify(settings(options)),
      ".gemini/GEMINI.md": options.instructions,
      [askFile]: askPolicy,
      [keepFile]: keepSessions,
    },
  }),
};

/** Takes precedence over what a project allows. */
const askPolicy = `[[rule]]
toolName = ["replace", "run_shell_command", "write_file"]
decision = "ask_user"
priority = 999
`;

/**
 * Loaded before the program. Gemini CLI names a conversation's file by the minute, and recreates the file of a
 * conversation that it resumes: within the same minute, that is the same file, and the conversation is lost.
 */
const keepSessions = `import { existsSync, globSync, renameSync } from "node:fs";
import { isMainThread } from "node:worker_threads";

const files = isMainThread ? globSync(process.env.HOME + "/.gemini/tmp/*/chats/session-*.jsonl") : [];
for (const file of files) {
  const kept = file.replace(/session-.{16}-/, "session-2000-01-01T00-00-");
  if (!existsSync(kept)) renameSync(file, kept);
}
`;

function settings({ model }: OpenOptions) {
  return {
    general: {
      enableAutoUpdate: false,
      enableAutoUpdateNotification: false,
      // The gateway has already retried.
      maxAttempts: 1,
      retryFetchErrors: false,
      topicUpdateNarration: false,
      sessionRetention: { enabled: false },
    },
    // Its small models also map to the run's model.
    modelConfigs: { customOverrides: [{ match: { overrideScope: "core" }, modelConfig: { model } }] },
    // Share of a million tokens, which it assumes for every model. The model's real size is unknown here.
    model: { compressionThreshold: 0.15, disableLoopDetection: true },
    // With its own terminal it does not report a command's output.
    tools: {
      shell: { enableInteractiveShell: false },
      exclude: ["activate_skill", "google_web_search", "invoke_agent", "web_fetch"],
      discoveryCommand: "",
    },
    hooksConfig: { enabled: false },
    skills: { enabled: false },
    experimental: { enableAgents: false },
    advanced: { ignoreLocalEnv: true },
    security: { auth: { selectedType: "gateway" } },
    privacy: { usageStatisticsEnabled: false },
    telemetry: { enabled: false },
  };
}
