import { noUsage, SlipwayError } from "@slipway/contract";
import type { ModelRequest, Part, StopReason } from "../conversation.ts";
import type { StreamWriter } from "../dialect.ts";
import { googleError, googleErrorOf } from "../errors.ts";
import { breakOff, writeSse } from "../sse.ts";
import { writeCandidate, writePart, writeUsage } from "./response.ts";

/** A call is a single part, so it is written when it is whole. */
export function googleStreamWriter(request: ModelRequest): StreamWriter {
  let [id, model, usage] = ["", request.model, noUsage];
  let call: Extract<Part, { type: "tool_call" }> | undefined;

  return {
    write(event) {
      switch (event.type) {
        case "start":
          [id, model] = [event.id, event.model];
          return "";
        case "usage":
          usage = event.usage;
          return "";
        case "text":
          return closeCall() + say(event);
        case "thinking":
          return closeCall() + say({ ...event, signature: "" });
        case "tool_start": {
          const closed = closeCall();
          call = { type: "tool_call", id: event.id, name: event.name, input: "" };
          return closed;
        }
        case "tool_input":
          if (call !== undefined) call = { ...call, input: call.input + event.text };
          return "";
        case "stop":
          return stop(event.reason);
        case "failure":
          return streamError(googleErrorOf(event.status, event.message));
      }
    },
  };

  function say(part: Part): string {
    const parts = "text" in part && part.text === "" ? [] : writePart(part);
    return parts.length === 0 ? "" : chunk(writeCandidate(parts));
  }

  function closeCall(): string {
    const said = call === undefined ? "" : say(call);
    call = undefined;
    return said;
  }

  /** Gemini CLI takes any stop reason for success: report a missing answer as a failure. */
  function stop(reason: StopReason): string {
    if (reason === "refusal") return streamError(googleError(refused));
    if (reason === "max_tokens") return streamError(googleError(cutOff));
    return closeCall() + chunk({ ...writeCandidate([], reason), usageMetadata: writeUsage(usage) });
  }

  function chunk(fields: object): string {
    return writeSse({ ...fields, modelVersion: model, responseId: id });
  }
}

const refused = new SlipwayError("answer_refused", "the model declines to answer");
const cutOff = new SlipwayError("stream_truncated", "the model's answer is longer than its limit");

/** Without `data:` and separately, like Google's servers: clients take any event for a part of the answer. */
export function streamError(error: object): string {
  return breakOff(JSON.stringify({ error }));
}
