import { Readable, Writable } from "node:stream";
import {
  type ClientContext,
  client,
  type InitializeResponse,
  type McpServer,
  methods,
  type NewSessionResponse,
  ndJsonStream,
  PROTOCOL_VERSION,
  type PromptResponse,
  type RequestPermissionRequest,
  type RequestPermissionResponse,
  type SessionUpdate,
} from "@agentclientprotocol/sdk";
import { type AgentEvent, SlipwayError } from "@slipway/contract";
import { idText, shortText } from "../../system/text.ts";
import { type OpenOptions, teamServer } from "../driver.ts";
import type { Program } from "../program/process.ts";
import { sessionFailureCapability } from "./session-failure.ts";
import { terminalOutputCapability } from "./translate.ts";

/** When many agents start on a busy machine, the team's tools need longer than an agent's default timeout. */
export const serverStartSeconds = 120;
const maxMessageBytes = 32 * 1024 * 1024;

export interface AcpHandlers {
  update(update: SessionUpdate): void;
  permission(request: RequestPermissionRequest): Promise<RequestPermissionResponse>;
}

/** A conversation with an agent's running program. */
export interface Conversation {
  readonly session: string;
  readonly announcement: AgentEvent;
  prompt(text: string): Promise<PromptResponse>;
  cancel(): Promise<void>;
}

/** Resumes the conversation `session`, or starts one. Fails with `SessionLost` if that one is gone. */
export async function converse(
  program: Program,
  options: OpenOptions,
  session: string | undefined,
  handlers: AcpHandlers,
): Promise<Conversation> {
  let listening = false;
  let updates = 0;
  const { agent } = client({ name: "slipway" })
    .onNotification(methods.client.session.update, ({ params }) => {
      updates++;
      // Updates during the load of a conversation are its history.
      if (listening) handlers.update(params.update);
    })
    .onRequest(methods.client.session.requestPermission, ({ params }) => handlers.permission(params))
    .connect(ndJsonStream(Writable.toWeb(program.stdin), webReadable(program.stdout), { maxMessageBytes }));
  const initialized = await agent.request(methods.agent.initialize, {
    protocolVersion: PROTOCOL_VERSION,
    clientInfo: { name: "slipway", version: "1" },
    // The agent reads, writes and runs by itself: it is already in the sandbox.
    clientCapabilities: {
      fs: { readTextFile: false, writeTextFile: false },
      terminal: false,
      // Receive warnings as such, not as the model's words.
      session: { notices: {} },
      _meta: { ...sessionFailureCapability, ...terminalOutputCapability },
    },
  });
  const sessionId = await openSession(agent, initialized, options, session);
  if (session !== undefined && !canResume(initialized)) await passHistory(agent, () => updates);
  listening = true;
  return {
    session: sessionId,
    announcement: announce(sessionId, options.model, initialized),
    prompt: (text) => agent.request(methods.agent.session.prompt, { sessionId, prompt: [{ type: "text", text }] }),
    cancel: () => agent.notify(methods.agent.session.cancel, { sessionId }),
  };
}

async function openSession(
  agent: ClientContext,
  initialized: InitializeResponse,
  { workdir, tools }: OpenOptions,
  session: string | undefined,
): Promise<string> {
  const mcpServers = teamServers(tools.command);
  const place = { cwd: workdir, mcpServers, ...(mcpServers.length > 0 && { _meta: awaitServersMeta }) };
  if (session === undefined) {
    const created = await agent.request<NewSessionResponse>(methods.agent.session.new, place);
    return created.sessionId;
  }
  const request = { sessionId: session, ...place };
  try {
    if (canResume(initialized)) await agent.request(methods.agent.session.resume, request);
    else if (initialized.agentCapabilities?.loadSession) await agent.request(methods.agent.session.load, request);
    else throw new SlipwayError("capability_missing", "This agent cannot resume a conversation.");
    return session;
  } catch (error) {
    throw new SessionLost("The agent's conversation could not be resumed.", { cause: error });
  }
}

/** Can resume without replaying the history. */
function canResume({ agentCapabilities }: InitializeResponse): boolean {
  return Boolean(agentCapabilities?.sessionCapabilities?.resume);
}

/**
 * Gemini CLI replays the history of a conversation after it has answered that it is loaded. While there is more, some
 * of it arrives before the answer to any request, even to an unknown method.
 */
async function passHistory(agent: ClientContext, countUpdates: () => number): Promise<void> {
  for (let before = -1; before !== countUpdates(); ) {
    before = countUpdates();
    await agent.request("_slipway/heard", {}).catch(() => {});
  }
}

function announce(session: string, model: string, { agentInfo }: InitializeResponse): AgentEvent {
  const version = agentInfo?.version;
  return { type: "session", session: idText(session), model, ...(version && { version: shortText(version) }) };
}

export class SessionLost extends Error {}

/** Asks Codex's adapter to wait for the servers: Codex itself starts with whatever tools it has by then. */
const awaitServersMeta = { mcpStartupAwaitTimeoutMs: 1000 * serverStartSeconds };

function teamServers([command, ...args]: readonly string[]): McpServer[] {
  return command === undefined ? [] : [{ name: teamServer, command, args, env: [] }];
}

/** Node's type of web streams is wider than the protocol library's. */
function webReadable(stream: Readable): ReadableStream<Uint8Array> {
  return Readable.toWeb(stream) as ReadableStream<Uint8Array>;
}
