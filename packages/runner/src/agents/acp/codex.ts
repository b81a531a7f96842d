import { type OpenOptions, teamServer } from "../driver.ts";
import type { AcpAgent } from "./agent.ts";
import { serverStartSeconds } from "./conversation.ts";

const keyVariable = "SLIPWAY_RUN_TOKEN";

/** Codex through its adapter, which runs on the runner's Node and includes Codex. */
export const codex: AcpAgent = {
  name: "codex",
  program: {
    directory: "codex",
    files: ["dist/index.js", "node_modules/@agentclientprotocol/codex-acp/dist/index.js"],
    command: "codex-acp",
    packages: ["@openai/codex", "@agentclientprotocol/codex-acp"],
  },
  launch: (options, { file, home }) => ({
    argv: file.endsWith(".js") ? [process.execPath, file] : [file],
    env: {
      CODEX_HOME: `${home}/.codex`,
      [keyVariable]: options.gateway.token,
      // Full access: the sandbox is the limit, and Codex cannot create its own inside. Read-only: it asks for the rest.
      INITIAL_AGENT_MODE: options.permissions === "allow" ? "agent-full-access" : "read-only",
      NO_BROWSER: "1",
      // The adapter passes the team's server to Codex. Its timeout comes from the settings.
      DISABLE_MCP_CONFIG_FILTERING: "true",
    },
    files: { ".codex/config.toml": settings(options), ".codex/AGENTS.md": options.instructions },
  }),
};

/** Every JSON string is also a TOML string. */
function settings({ model, gateway, tools }: OpenOptions): string {
  return `model = ${JSON.stringify(model)}
model_provider = "slipway"
check_for_update_on_startup = false
project_doc_max_bytes = 1048576

[model_providers.slipway]
name = "Slipway"
base_url = ${JSON.stringify(`${gateway.baseUrl}/v1`)}
env_key = "${keyVariable}"
wire_api = "responses"
request_max_retries = 0
stream_max_retries = 0

[analytics]
enabled = false
${teamSettings(tools.command)}`;
}

function teamSettings([command, ...args]: readonly string[]): string {
  if (command === undefined) return "";
  return `
[mcp_servers.${teamServer}]
command = ${JSON.stringify(command)}
args = ${JSON.stringify(args)}
startup_timeout_sec = ${serverStartSeconds}
`;
}
