import type { AgentDialect } from "../dialect.ts";
import { googleError } from "../errors.ts";
import { readRequest } from "./request.ts";
import { writeResponse } from "./response.ts";
import { googleStreamWriter, streamError } from "./stream-writer.ts";

/** Google's generateContent and streamGenerateContent. Only agents speak it; requests are translated for endpoints. */
export const google: AgentDialect = {
  name: "google",
  readRequest,
  writeResponse,
  streamWriter: googleStreamWriter,
  writeError: (error) => ({ error: googleError(error) }),
  writeStreamError: (error) => streamError(googleError(error)),
};
