import type { Usage } from "@slipway/contract";
import type { ModelMessage } from "ai";
import { InvalidAnswerError } from "./errors.ts";
import { connectModels, type GatewayAddress } from "./models.ts";
import type { Question, StructuredQuestion, Unusable } from "./question.ts";

/**
 * Slipway's own calls of models, by role, through the gateway. They fail with the gateway's codes, `stream_truncated`,
 * `answer_refused`, `aborted`, or `invalid_answer` as an `InvalidAnswerError`. What came of an answer is in an `AnswerError`.
 */
export interface Roles extends AsyncDisposable {
  /** An answer that fits the schema. One that does not is asked for again, with what is wrong about it. */
  ask<T>(question: StructuredQuestion<T>): Promise<{ value: T; usage: Usage; tries: number }>;
  /** An answer in plain words. */
  text(question: Question): Promise<{ text: string; usage: Usage }>;
}

export function createRoles({ gateway }: { readonly gateway: GatewayAddress }): Roles {
  const models = connectModels(gateway);
  return {
    async ask({ schema, maxRepairs = 2, ...question }) {
      const messages = [firstMessage(question)];
      let usage: Usage = { input: 0, output: 0, cacheRead: 0, cacheWrite: 0 };
      for (let tries = 1; ; tries++) {
        const answer = await models.object(question, messages, schema);
        usage = sum(usage, answer.usage);
        if ("value" in answer) return { value: answer.value, usage, tries };
        if (tries > maxRepairs) throw new InvalidAnswerError(question.role, answer, { tries });
        messages.push(...askAgain(answer));
      }
    },

    async text(question) {
      const { text, usage } = await models.text(question, [firstMessage(question)]);
      if (text.trim() === "") throw new InvalidAnswerError(question.role, { text, problem: "it is empty" });
      return { text, usage };
    },

    [Symbol.asyncDispose]: () => models[Symbol.asyncDispose](),
  };
}

function firstMessage({ prompt, images = [] }: Question): ModelMessage {
  const files = images.map((image) => ({ type: "file" as const, ...image }));
  return { role: "user", content: [...files, { type: "text", text: prompt }] };
}

const maxQuotedCharacters = 32 * 1024;

function askAgain({ text, problem }: Unusable): ModelMessage[] {
  const demand = `This answer can not be used: ${problem}\nAnswer again, with JSON that fits the schema and nothing else.`;
  return [
    // Endpoints refuse an empty message.
    { role: "assistant", content: text.trim().slice(0, maxQuotedCharacters) || "(nothing)" },
    { role: "user", content: demand },
  ];
}

function sum(a: Usage, b: Usage): Usage {
  return {
    input: a.input + b.input,
    output: a.output + b.output,
    cacheRead: a.cacheRead + b.cacheRead,
    cacheWrite: a.cacheWrite + b.cacheWrite,
  };
}
