import { setTimeout as wait } from "node:timers/promises";
import { RequestError } from "@agentclientprotocol/sdk";
import type { ClaimedEnd } from "@slipway/contract";
import { claimEnd } from "../../supervise/end.ts";
import { failureEnd } from "../program/failure.ts";
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
export async function failureOf(error: unknown, program: Ending, begun: boolean): Promise<ClaimedEnd> {
  if (error instanceof SessionLost) return claimEnd("session_lost", error.message);
  if (!(error instanceof RequestError)) return await lostConnection(error, program);
  const details = error.data === undefined ? "" : ` ${JSON.stringify(error.data)}`;
  return failureEnd({ status: statusOf(error), reason: reasonOf(error, begun), message: `${error.message}${details}` });
}

/** The connection breaks when the program ends. Do not report a crash while it runs. */
async function lostConnection(error: unknown, program: Ending): Promise<ClaimedEnd> {
  const exit = await Promise.race([program.exit, wait(exitMs, undefined, { ref: false })]);
  if (exit !== undefined) return await crashOf(program);
  return claimEnd("internal", `The agent cannot be reached: ${error}`);
}

/** Gemini CLI puts the HTTP status of the model's endpoint where the protocol has negative codes. */
function statusOf({ code }: RequestError): number | undefined {
  return code >= 400 && code < 600 ? code : undefined;
}

/** The protocol has no kinds of failures, only wording. */
function reasonOf({ code, message }: RequestError, begun: boolean): ClaimedEnd["reason"] | undefined {
  if (code === authRequired) return "auth";
  if (!brokenConnection.test(message)) return undefined;
  return begun ? "truncated" : "network";
}
