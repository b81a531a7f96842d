import { addUsage, noUsage, type Usage } from "@slipway/contract";
import { type ModelMessage, NoObjectGeneratedError, Output } from "ai";
import { z } from "zod";
import { InvalidAnswerError } from "./errors.ts";
import { connectModels, type GatewayAddress } from "./models.ts";
import type { Question, StructuredQuestion, Unusable } from "./question.ts";

/**
 * Slipway's own model calls, by role, through the gateway. They fail with the gateway's codes, `stream_truncated`,
 * `answer_refused`, `aborted`, or `invalid_answer` (an `InvalidAnswerError`). An `AnswerError` holds the partial answer.
 */
export interface Roles extends AsyncDisposable {
  /** Returns an answer that fits the schema. Asks again after one that does not, and tells the model what is wrong. */
  ask<T>(question: StructuredQuestion<T>): Promise<{ value: T; usage: Usage; tries: number }>;
  /** Returns an answer as plain text. */
  text(question: Question): Promise<{ text: string; usage: Usage }>;
}

export function createRoles({ gateway }: { readonly gateway: GatewayAddress }): Roles {
  const models = connectModels(gateway);
  return {
    async ask({ schema, maxRepairs = 2, ...question }) {
      const messages = [firstMessage(question)];
      let usage = noUsage;
      for (let tries = 1; ; tries++) {
        const asked = await models.ask(question, messages, Output.object({ schema }));
        usage = addUsage(usage, asked.usage);
        try {
          return { value: await asked.answer.output, usage, tries };
        } catch (error) {
          if (!NoObjectGeneratedError.isInstance(error)) throw error;
          const unusable = { text: error.text ?? "", problem: problemOf(error) };
          if (tries > maxRepairs) throw new InvalidAnswerError(question.role, unusable, { tries });
          messages.push(...askAgain(unusable));
        }
      }
    },

    async text(question) {
      const { answer, usage } = await models.ask(question, [firstMessage(question)], Output.text());
      const text = await answer.text;
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

const maxProblemCharacters = 4096;

function problemOf({ cause }: NoObjectGeneratedError): string {
  const reason = cause instanceof Error ? cause.cause : undefined;
  const problem = reason instanceof z.ZodError ? z.prettifyError(reason) : `it is not JSON. ${String(reason ?? "")}`;
  return problem.slice(0, maxProblemCharacters);
}

const maxQuotedCharacters = 32 * 1024;

function askAgain({ text, problem }: Unusable): ModelMessage[] {
  const demand = `This answer cannot be used: ${problem}\nAnswer again, only with JSON that fits the schema.`;
  return [
    // Endpoints refuse an empty message.
    { role: "assistant", content: text.trim().slice(0, maxQuotedCharacters) || "(nothing)" },
    { role: "user", content: demand },
  ];
}
