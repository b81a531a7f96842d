import { RequestError } from "@agentclientprotocol/sdk";
import type { FinalEvent } from "../../supervise.ts";
import { failureEvent } from "../program/failure.ts";
import { crashOf, type Program } from "../program/process.ts";
import { shortText } from "../program/sizes.ts";
import { SessionLost } from "./conversation.ts";

const authRequired = -32000;

/** How a turn ends when a request to the agent failed: by the agent's own error, or because it is no longer there. */
export async function failureOf(error: unknown, program: Program): Promise<FinalEvent> {
  if (error instanceof SessionLost) return { type: "error", kind: "session_lost", message: shortText(error.message) };
  if (!(error instanceof RequestError)) return await crashOf(program);
  const details = error.data === undefined ? "" : ` ${JSON.stringify(error.data)}`;
  return failureEvent({
    kind: error.code === authRequired ? "auth" : undefined,
    message: `${error.message}${details}`,
  });
}
