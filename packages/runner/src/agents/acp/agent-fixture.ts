// An agent that speaks the protocol and misbehaves as its first argument says.
import { closeSync, writeFileSync } from "node:fs";
import { Readable, Writable } from "node:stream";
import {
  type AgentContext,
  agent,
  methods,
  ndJsonStream,
  PROTOCOL_VERSION,
  type PromptRequest,
  RequestError,
  type SessionUpdate,
} from "@agentclientprotocol/sdk";

const [mode = ""] = process.argv.slice(2);
const sessionId = "session-1";

if (mode === "garbage") console.log("npm notice: a new version is there");
if (mode === "exit") process.exit(7);
if (mode === "babble") setInterval(() => console.log("still loading"), 10);
else converse();

function converse(): void {
  agent({ name: "fixture" })
    .onRequest(methods.agent.initialize, () => ({
      protocolVersion: PROTOCOL_VERSION,
      agentCapabilities: { loadSession: mode.endsWith("history") },
    }))
    .onRequest(methods.agent.session.new, () => ({ sessionId }))
    .onRequest(methods.agent.session.load, async ({ client }) => {
      const told = tellHistory(client);
      if (mode !== "late history") await told;
      return {};
    })
    .onRequest(methods.agent.session.prompt, async ({ client, params }) => {
      if (mode === "model") writeFileSync("answer.txt", await askModel(params));
      await answer(client);
      return { stopReason: mode === "max_tokens" || mode === "refusal" ? mode : "end_turn" };
    })
    .connect(ndJsonStream(Writable.toWeb(process.stdout), Readable.toWeb(process.stdin) as ReadableStream<Uint8Array>));
}

/** By OpenAI's chat completions, at the address and with the key that its environment has. */
async function askModel({ prompt: [first] }: PromptRequest): Promise<string> {
  const { MODEL_URL, MODEL_KEY, MODEL: model } = process.env;
  const content = first?.type === "text" ? first.text : "";
  const response = await fetch(`${MODEL_URL}/chat/completions`, {
    method: "POST",
    headers: { "content-type": "application/json", authorization: `Bearer ${MODEL_KEY}` },
    body: JSON.stringify({ model, messages: [{ role: "user", content }] }),
  });
  const text = await response.text();
  if (!response.ok) throw RequestError.internalError(undefined, text);
  return JSON.parse(text).choices[0].message.content;
}

async function tellHistory(client: AgentContext): Promise<void> {
  for (let part = 0; part < 100; part++) {
    await say(client, { sessionUpdate: "agent_message_chunk", content: { type: "text", text: "said long ago" } });
  }
}

async function answer(client: AgentContext): Promise<void> {
  if (mode === "die") process.kill(process.pid, "SIGKILL");
  if (mode === "mute") closeSync(1);
  if (mode === "mute" || mode === "deaf") await new Promise(() => {});
  if (mode === "unannounced") {
    const update = { toolCallId: "call-1", title: "touch file", kind: "edit", rawInput: { path: "file" } } as const;
    await say(client, { sessionUpdate: "tool_call_update", ...update, status: "in_progress" });
    await say(client, { sessionUpdate: "tool_call_update", ...update, status: "failed", rawOutput: "no such file" });
  }
  if (mode === "edits") {
    const call = { sessionUpdate: "tool_call", title: "Writing to file", kind: "edit", status: "completed" } as const;
    let calls = 0;
    for (const newText of ["one", "two", "two"]) {
      await say(client, { ...call, toolCallId: String(calls++), content: [{ type: "diff", path: "file", newText }] });
    }
  }
  if (mode === "plan") {
    const entries = [{ content: "First", priority: "high", status: "in_progress" } as const];
    await say(client, { sessionUpdate: "plan", entries });
  }
  await say(client, { sessionUpdate: "agent_message_chunk", content: { type: "text", text: "x".repeat(70_000) } });
}

async function say(client: AgentContext, update: SessionUpdate): Promise<void> {
  await client.notify(methods.client.session.update, { sessionId, update });
}
