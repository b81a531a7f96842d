import { z } from "zod";
import type { Dialect } from "../dialect.ts";
import { openaiError } from "../errors.ts";
import { createMeter } from "../meter.ts";
import { breakOff, writeSse } from "../sse.ts";
import { createStreamReader } from "../stream-reader.ts";
import { readRequest, writeRequest } from "./request.ts";
import { readResponse, writeResponse } from "./response.ts";
import { responsesInterpreter } from "./stream-reader.ts";
import { responsesStreamWriter } from "./stream-writer.ts";
import { responseBase } from "./usage.ts";

/** OpenAI's Responses API. */
export const responses: Dialect = {
  name: "responses",
  path: "/v1/responses",
  readRequest,
  writeRequest,
  readResponse,
  writeResponse,
  streamReader: () => createStreamReader(responsesInterpreter()),
  streamWriter: responsesStreamWriter,
  meter: () =>
    createMeter({
      markers: /"response\.(?:completed|incomplete|failed)"|"error"/,
      interpreter: responsesInterpreter(),
      readResponse,
      deltaText: (event) => deltaSchema.parse(event).delta,
    }),
  writeError: (error) => ({ error: openaiError(error) }),
  writeStreamError,
};

const deltaSchema = z.object({ delta: z.string() });

/** Clients retry after a failure, unless its code says that it would fail again. */
function writeStreamError(error: Parameters<Dialect["writeStreamError"]>[0]): string {
  const { code, message } = openaiError(error);
  const final = error.retry === "never" && code === error.code;
  const response = {
    ...responseBase("", ""),
    status: "failed",
    error: { code: final ? "invalid_prompt" : code, message },
  };
  return breakOff(writeSse({ type: "response.failed", response }, "response.failed"));
}
