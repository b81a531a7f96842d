import { SlipwayError } from "@slipway/contract";
import { type ModelMessage, modelMessageSchema } from "ai";
import { z } from "zod";
import { goOnPrompt } from "../../system/text.ts";

const callSchema = z.strictObject({
  id: z.string(),
  name: z.string(),
  input: z.unknown(),
  output: z.string().optional(),
});

const stateSchema = z.strictObject({
  messages: z.array(modelMessageSchema),
  /** Tool calls of the step under way: one that a restart has ended is never made twice. */
  calls: z.array(callSchema),
  /** Words of the user that no model call has taken up. */
  waiting: z.array(z.string()),
});

type Call = z.output<typeof callSchema>;

/** What was said so far. It is on disk before it is acted upon. */
export interface Conversation {
  readonly messages: readonly ModelMessage[];
  readonly lastAnswer: string | undefined;
  /** Begins a turn, or goes on with the one that a restart ended. */
  begin(prompt: string): Promise<void>;
  /** Words of the user for the next step; false: no turn listens. */
  steer(text: string): boolean;
  /** Takes up what the user has said since. */
  listen(): void;
  /** True: nothing waits, and the turn no longer listens. Otherwise what waits is taken up. */
  finish(): boolean;
  /** The turn no longer listens, whatever waits: it is for the next one. */
  end(): void;
  callStarted(call: { readonly id: string; readonly name: string; readonly input: unknown }): Promise<void>;
  callEnded(id: string, output: string): Promise<void>;
  stepEnded(messages: readonly ModelMessage[]): Promise<void>;
  /** No call is under way. Each one of the last step, finished or not, gets a result. */
  closeStep(): Promise<void>;
  replace(messages: readonly ModelMessage[]): Promise<void>;
  /** The AI SDK swallows what its callbacks throw: a conversation that could not be saved ends here. */
  assertSaved(): void;
}

export function openConversation(state: unknown, save: (state: unknown) => Promise<void>): Conversation {
  let { messages, calls, waiting } = readState(state);
  let failure: unknown;
  const keep = async () => {
    try {
      await save({ messages, calls, waiting });
    } catch (error) {
      failure = error;
      throw error;
    }
  };
  let isListening = false;
  const closeCalls = () => {
    messages = [...messages, ...asMessages(calls)];
    calls = [];
  };
  closeCalls();
  const listen = () => {
    if (waiting.length > 0) messages = [...messages, { role: "user", content: waiting.join("\n\n") }];
    waiting = [];
  };
  return {
    get messages() {
      return messages;
    },
    get lastAnswer() {
      const last = messages.at(-1);
      return last?.role === "assistant" ? textOf(last) : undefined;
    },
    async begin(prompt) {
      isListening = true;
      if (prompt === goOnPrompt && messages.length > 0) return;
      waiting = [...waiting, prompt];
      listen();
      await keep();
    },
    steer(text) {
      if (!isListening) return false;
      waiting = [...waiting, text];
      // Whether it was saved is asked before the next step.
      void keep().catch(() => {});
      return true;
    },
    listen,
    finish() {
      isListening = waiting.length > 0;
      listen();
      return !isListening;
    },
    end() {
      isListening = false;
    },
    async callStarted(call) {
      calls = [...calls, call];
      await keep();
    },
    async callEnded(id, output) {
      calls = calls.map((call) => (call.id === id ? { ...call, output } : call));
      await keep();
    },
    async stepEnded(added) {
      messages = [...messages, ...added];
      calls = [];
      await keep();
    },
    async closeStep() {
      closeCalls();
      await keep();
    },
    async replace(next) {
      messages = [...next];
      await keep();
    },
    assertSaved() {
      if (failure !== undefined)
        throw new SlipwayError("internal", "the conversation could not be saved", { cause: failure });
    },
  };
}

function readState(state: unknown): z.output<typeof stateSchema> {
  if (state === undefined) return { messages: [], calls: [], waiting: [] };
  const parsed = stateSchema.safeParse(state);
  if (parsed.success) return parsed.data;
  throw new SlipwayError("internal", "the agent's saved conversation can not be read", { cause: parsed.error });
}

function asMessages(calls: readonly Call[]): ModelMessage[] {
  if (calls.length === 0) return [];
  const lost = "[interrupted: it may have had an effect or none; look before you do it again]";
  return [
    {
      role: "assistant",
      content: calls.map(({ id, name, input }) => ({ type: "tool-call", toolCallId: id, toolName: name, input })),
    },
    {
      role: "tool",
      content: calls.map(({ id, name, output }) => ({
        type: "tool-result",
        toolCallId: id,
        toolName: name,
        output: { type: "text", value: output ?? lost },
      })),
    },
  ];
}

function textOf(message: ModelMessage): string {
  if (typeof message.content === "string") return message.content;
  return message.content.map((part) => (part.type === "text" ? part.text : "")).join("");
}
