import { type OpenOptions, teamServer } from "../driver.ts";
import type { AcpAgent } from "./agent.ts";

const [askFile, keepFile] = ["ask.toml", "keep-sessions.mjs"];

/** Gemini CLI speaks the protocol by itself, and runs on the runner's own Node. */
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
      // In a directory that is not trusted it takes no servers of tools, the team's neither.
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

/** Goes before what a project allows. */
const askPolicy = `[[rule]]
toolName = ["replace", "run_shell_command", "write_file"]
decision = "ask_user"
priority = 999
`;

/**
 * Loaded before the program. It names the file of a conversation by the minute, and makes that of a conversation which it
 * takes up anew first: in the same minute that is the same file, and the conversation is lost.
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
      // The gateway has tried again already.
      maxAttempts: 1,
      retryFetchErrors: false,
      topicUpdateNarration: false,
      sessionRetention: { enabled: false },
    },
    // Its small models, too, are the run's.
    modelConfigs: { customOverrides: [{ match: { overrideScope: "core" }, modelConfig: { model } }] },
    // Of a million tokens, which it takes every model to have; which one answers is not known here.
    model: { compressionThreshold: 0.15, disableLoopDetection: true },
    // By a terminal of its own it does not tell a command's output.
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
