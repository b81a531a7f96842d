import { z } from "zod";
import type { Dialect } from "../dialect.ts";
import { anthropicErrorType, errorMessage } from "../errors.ts";
import { freeTextReader } from "../free-text.ts";
import { createMeter } from "../meter.ts";
import { breakOff, writeSse } from "../sse.ts";
import { createStreamReader } from "../stream-reader.ts";
import { readRequest, writeRequest } from "./request.ts";
import { readResponse, writeResponse } from "./response.ts";
import { anthropicInterpreter } from "./stream-reader.ts";
import { anthropicStreamWriter } from "./stream-writer.ts";

/** Anthropic's Messages API. */
export const anthropic: Dialect = {
  name: "anthropic",
  path: "/v1/messages",
  readRequest,
  writeRequest,
  readResponse,
  writeResponse,
  streamReader: (request) => createStreamReader(anthropicInterpreter(), freeTextReader(request)),
  streamWriter: anthropicStreamWriter,
  meter: () =>
    createMeter({ markers: /"message_|"error"/, interpreter: anthropicInterpreter(), readResponse, deltaText }),
  writeError,
  writeStreamError: (error) => breakOff(writeSse(writeError(error), "error")),
};

function writeError(error: Parameters<Dialect["writeError"]>[0]): Record<string, unknown> {
  return { type: "error", error: { type: anthropicErrorType(error), message: errorMessage(error) } };
}

const deltaSchema = z.object({
  delta: z.object({ text: z.string(), thinking: z.string(), partial_json: z.string() }).partial(),
});

function deltaText(event: unknown): string {
  const { text, thinking, partial_json } = deltaSchema.parse(event).delta;
  return text ?? thinking ?? partial_json ?? "";
}
