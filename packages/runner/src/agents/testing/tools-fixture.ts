// The team's tools as a run has them: an MCP server that asks the socket in its argument.
import { serveMcp } from "../../team/mcp.ts";

await serveMcp(process.argv[2] ?? "");
