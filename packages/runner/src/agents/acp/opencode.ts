import { join } from "node:path";
import type { OpenOptions } from "../driver.ts";
import type { AcpAgent } from "./agent.ts";

const provider = "slipway";
const instructionsFile = "instructions.md";

/** OpenCode speaks the protocol itself. Its settings come in a variable. */
export const opencode: AcpAgent = {
  name: "opencode",
  program: {
    directory: "opencode",
    files: [
      "bin/opencode",
      `node_modules/opencode-linux-${process.arch}/bin/opencode`,
      `node_modules/opencode-ai/node_modules/opencode-linux-${process.arch}/bin/opencode`,
    ],
    command: "opencode",
    packages: ["opencode-ai"],
  },
  launch: (options, { file, home }) => ({
    argv: [file, "acp"],
    env: {
      OPENCODE_CONFIG_CONTENT: JSON.stringify(settings(options, home)),
      // A project could bring its own plugins, commands and servers.
      OPENCODE_DISABLE_PROJECT_CONFIG: "1",
      OPENCODE_DISABLE_CLAUDE_CODE: "1",
      OPENCODE_DISABLE_EXTERNAL_SKILLS: "1",
      OPENCODE_DISABLE_DEFAULT_PLUGINS: "1",
      OPENCODE_DISABLE_AUTOUPDATE: "1",
      OPENCODE_DISABLE_MODELS_FETCH: "1",
      OPENCODE_DISABLE_LSP_DOWNLOAD: "1",
    },
    files: { [instructionsFile]: options.instructions },
  }),
};

function settings({ model, gateway, permissions }: OpenOptions, home: string) {
  return {
    model: `${provider}/${model}`,
    small_model: `${provider}/${model}`,
    enabled_providers: [provider],
    provider: {
      [provider]: {
        npm: "@ai-sdk/anthropic",
        name: "Slipway",
        options: { baseURL: `${gateway.baseUrl}/v1`, apiKey: gateway.token },
        // Without a limit it never compacts a conversation. The model's real size is unknown here.
        models: { [model]: { name: model, tool_call: true, limit: { context: 200_000, output: 32_000 } } },
      },
    },
    permission: { edit: permissions, bash: permissions, webfetch: "deny" },
    instructions: [join(home, instructionsFile)],
    // The runner detects changes itself.
    snapshot: false,
    autoupdate: false,
    share: "disabled",
  };
}
