import { anthropic } from "./anthropic/index.ts";
import { chat } from "./chat/index.ts";
import type { AgentDialect, Dialect, DialectName } from "./dialect.ts";
import { google } from "./google/index.ts";
import { responses } from "./responses/index.ts";

export const dialects: Readonly<Record<DialectName, Dialect>> = { anthropic, chat, responses };

/** What an agent's POST to a path asks for. */
export interface Asked {
  readonly dialect: AgentDialect;
  readonly wants: "answer" | "count";
  /** Fields that this dialect has in the path and others in the body. */
  readonly fields: Readonly<Record<string, unknown>>;
}

const googlePath = /^\/v1(?:beta)?\/models\/(.+):(generateContent|streamGenerateContent|countTokens)$/;

export function askedAt(path: string): Asked | undefined {
  const dialect = Object.values(dialects).find((known) => known.path === path);
  if (dialect !== undefined) return { dialect, wants: "answer", fields: {} };
  if (path === `${anthropic.path}/count_tokens`) return { dialect: anthropic, wants: "count", fields: {} };
  const [, model, method] = googlePath.exec(path) ?? [];
  if (model === undefined) return undefined;
  const fields = { model, stream: method === "streamGenerateContent" };
  return { dialect: google, wants: method === "countTokens" ? "count" : "answer", fields };
}
