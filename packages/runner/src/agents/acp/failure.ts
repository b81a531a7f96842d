import { setTimeout as wait } from "node:timers/promises";
import { RequestError } from "@agentclientprotocol/sdk";
import type { AgentErrorKind } from "@slipway/contract";
import type { FinalEvent } from "../../supervise/supervise.ts";
import { shortText } from "../../system/text.ts";
import { failureEvent } from "../program/failure.ts";
import { crashOf, type Program } from "../program/process.ts";
import { SessionLost } from "./conversation.ts";

type Ending = Pick<Program, "exit" | "complaint">;

/** Between the end of a program's output and its exit. */
const exitMs = 10_000;
const authRequired = -32000;
const brokenConnection =
  /connection|socket|network|ECONN|fetch failed|unable to connect|^terminated$|incomplete json segment|JSON at position/i;

/**
 * How a turn ends when a request to the agent failed: by the agent's own error, or because the agent is gone. `begun`:
 * some of the model's answer had arrived.
 */
export async function failureOf(error: unknown, program: Ending, begun: boolean): Promise<FinalEvent> {
  if (error instanceof SessionLost) return { type: "error", kind: "session_lost", message: shortText(error.message) };
  if (!(error instanceof RequestError)) return await lostConnection(error, program);
  const details = error.data === undefined ? "" : ` ${JSON.stringify(error.data)}`;
  return failureEvent({ status: statusOf(error), kind: kindOf(error, begun), message: `${error.message}${details}` });
}

/** The connection breaks when the program ends. Do not report a crash while it runs. */
async function lostConnection(error: unknown, program: Ending): Promise<FinalEvent> {
  const exit = await Promise.race([program.exit, wait(exitMs, undefined, { ref: false })]);
  if (exit !== undefined) return await crashOf(program);
  return { type: "error", kind: "internal", message: shortText(`The agent cannot be reached: ${error}`) };
}

/** Gemini CLI puts the HTTP status of the model's endpoint where the protocol has negative codes. */
function statusOf({ code }: RequestError): number | undefined {
  return code >= 400 && code < 600 ? code : undefined;
}

/** The protocol has no kinds of failures, only wording. */
function kindOf({ code, message }: RequestError, begun: boolean): AgentErrorKind | undefined {
  if (code === authRequired) return "auth";
  if (!brokenConnection.test(message)) return undefined;
  return begun ? "truncated" : "network";
}
