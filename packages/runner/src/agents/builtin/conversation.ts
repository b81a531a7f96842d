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
  /** Tool calls of the current step. A call that a restart interrupted is never repeated. */
  calls: z.array(callSchema),
  /** The user's words that no model call has included yet. */
  waiting: z.array(z.string()),
});

type Call = z.output<typeof callSchema>;

/** The conversation so far. It is saved before anything acts on it. */
export interface Conversation {
  readonly messages: readonly ModelMessage[];
  readonly lastAnswer: string | undefined;
  /** Starts a turn, or continues one that a restart interrupted. */
  begin(prompt: string): Promise<void>;
  /** Adds the user's words to the next step. False: no turn is listening. */
  steer(text: string): boolean;
  /** Includes what the user has said since. */
  listen(): void;
  /** True: nothing is waiting, and the turn stops listening. Otherwise includes what is waiting. */
  finish(): boolean;
  /** Stops listening. Waiting words are for the next turn. */
  end(): void;
  callStarted(call: { readonly id: string; readonly name: string; readonly input: unknown }): Promise<void>;
  callEnded(id: string, output: string): Promise<void>;
  stepEnded(messages: readonly ModelMessage[]): Promise<void>;
  /** Call it when no call is under way. Gives each call of the last step a result, finished or not. */
  closeStep(): Promise<void>;
  replace(messages: readonly ModelMessage[]): Promise<void>;
  /** The AI SDK swallows errors of its callbacks: throws if a save has failed. */
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
      // `assertSaved` reports a failure before the next step.
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
  throw new SlipwayError("internal", "the agent's saved conversation cannot be read", { cause: parsed.error });
}

function asMessages(calls: readonly Call[]): ModelMessage[] {
  if (calls.length === 0) return [];
  const lost = "[interrupted: it may or may not have had an effect; check before you repeat it]";
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
