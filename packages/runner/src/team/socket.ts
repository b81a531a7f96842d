import { once } from "node:events";
import { rm } from "node:fs/promises";
import { connect, createServer, type Socket } from "node:net";
import { text } from "node:stream/consumers";
import { z } from "zod";
import type { TeamTool } from "../agents/driver.ts";

const maxRequestBytes = 1024 * 1024;
const maxConnections = 32;

const requestSchema = z.discriminatedUnion("type", [
  z.strictObject({ type: z.literal("list") }),
  z.strictObject({ type: z.literal("call"), name: z.string(), input: z.unknown() }),
]);
type TeamRequest = z.input<typeof requestSchema>;

const toolSchema = z.object({ name: z.string(), description: z.string(), schema: z.record(z.string(), z.unknown()) });
const answerSchema = z.object({
  tools: z.array(toolSchema).default([]),
  text: z.string().default(""),
  ok: z.boolean(),
});
type TeamAnswer = z.input<typeof answerSchema>;

/** Serves one agent's team tools on a unix socket: one request per connection, as JSON up to its end. */
export async function serveTeam(path: string, tools: readonly TeamTool[]): Promise<AsyncDisposable> {
  // Left by a killed runner.
  await rm(path, { force: true });
  const open = new Set<Socket>();
  const server = createServer({ allowHalfOpen: true }, (socket) => {
    open.add(socket);
    socket.on("close", () => open.delete(socket));
    serve(socket, tools).catch(() => socket.destroy());
  });
  server.maxConnections = maxConnections;
  server.listen(path);
  await once(server, "listening");
  return {
    async [Symbol.asyncDispose]() {
      const closed = once(server, "close");
      server.close();
      for (const socket of open) socket.destroy();
      await closed;
    },
  };
}

export async function askTeam(path: string, request: TeamRequest): Promise<z.output<typeof answerSchema>> {
  const socket = connect({ path, allowHalfOpen: true });
  socket.end(JSON.stringify(request));
  return answerSchema.parse(JSON.parse(await text(socket)));
}

async function serve(socket: Socket, tools: readonly TeamTool[]): Promise<void> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of socket.iterator({ destroyOnReturn: false }) as AsyncIterable<Buffer>) {
    chunks.push(chunk);
    bytes += chunk.length;
    if (bytes > maxRequestBytes) return void socket.destroy();
  }
  socket.end(JSON.stringify(await answer(Buffer.concat(chunks).toString(), tools)));
}

/** Answers an invalid request instead of failing: any program in the sandbox may connect. */
async function answer(request: string, tools: readonly TeamTool[]): Promise<TeamAnswer> {
  try {
    const asked = requestSchema.parse(JSON.parse(request));
    if (asked.type === "list") {
      return { tools: tools.map(({ name, description, schema }) => ({ name, description, schema })), ok: true };
    }
    const tool = tools.find(({ name }) => name === asked.name);
    if (tool === undefined) return { text: `There is no tool ${asked.name}.`, ok: false };
    return { text: await tool.run(asked.input), ok: true };
  } catch (error) {
    return { text: error instanceof Error ? error.message : String(error), ok: false };
  }
}
