import { anthropic } from "./anthropic/index.ts";
import { chat } from "./chat/index.ts";
import type { Dialect, DialectName } from "./dialect.ts";
import { responses } from "./responses/index.ts";

export const dialects: Readonly<Record<DialectName, Dialect>> = { anthropic, chat, responses };
