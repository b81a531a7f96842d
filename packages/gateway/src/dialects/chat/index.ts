import { z } from "zod";
import type { Dialect } from "../dialect.ts";
import { openaiError } from "../errors.ts";
import { freeTextReader } from "../free-text.ts";
import { createMeter } from "../meter.ts";
import { breakOff, writeSse } from "../sse.ts";
import { createStreamReader } from "../stream-reader.ts";
import { readRequest, writeRequest } from "./request.ts";
import { readResponse, writeResponse } from "./response.ts";
import { chatInterpreter } from "./stream-reader.ts";
import { chatStreamWriter } from "./stream-writer.ts";

/** OpenAI's chat completions, which many other endpoints also speak. */
export const chat: Dialect = {
  name: "chat",
  path: "/v1/chat/completions",
  readRequest,
  writeRequest,
  readResponse,
  writeResponse,
  streamReader: (request) => createStreamReader(chatInterpreter(), freeTextReader(request)),
  streamWriter: chatStreamWriter,
  meter: () => createMeter({ markers, interpreter: chatInterpreter(), readResponse, deltaText }),
  writeError: (error) => ({ error: openaiError(error) }),
  writeStreamError: (error) => breakOff(writeSse({ error: openaiError(error) })),
};

/** A `null` in their place is not a marker. */
const markers = /"usage"\s*:\s*\{|"finish_reason"\s*:\s*"|"error"|\[DONE\]/;

const deltaSchema = z.object({
  choices: z.array(
    z.object({
      delta: z.object({
        content: z.string().nullish(),
        reasoning_content: z.string().nullish(),
        reasoning: z.string().nullish(),
        tool_calls: z.array(z.object({ function: z.object({ arguments: z.string().nullish() }).nullish() })).nullish(),
      }),
    }),
  ),
});

function deltaText(event: unknown): string {
  const delta = deltaSchema.parse(event).choices[0]?.delta;
  const calls = (delta?.tool_calls ?? []).map((call) => call.function?.arguments ?? "");
  return [delta?.content, delta?.reasoning_content ?? delta?.reasoning, ...calls].join("");
}
