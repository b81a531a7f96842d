import { Server } from "@modelcontextprotocol/sdk/server/index.js";
import { StdioServerTransport } from "@modelcontextprotocol/sdk/server/stdio.js";
import { CallToolRequestSchema, ListToolsRequestSchema } from "@modelcontextprotocol/sdk/types.js";
import { askTeam } from "./socket.ts";

/** Serves the team's tools as an MCP server on standard input and output. The runner does the work. */
export async function serveMcp(socketPath: string): Promise<void> {
  const server = new Server({ name: "slipway", version: "1" }, { capabilities: { tools: {} } });
  server.setRequestHandler(ListToolsRequestSchema, async () => {
    const { tools } = await askTeam(socketPath, { type: "list" });
    const listed = tools.map(({ name, description, schema }) => ({
      name,
      description,
      inputSchema: { ...schema, type: "object" as const },
    }));
    return { tools: listed };
  });
  server.setRequestHandler(CallToolRequestSchema, async ({ params }) => {
    const { text, ok } = await askTeam(socketPath, { type: "call", name: params.name, input: params.arguments ?? {} });
    return { content: [{ type: "text", text }], isError: !ok };
  });
  await server.connect(new StdioServerTransport());
}
