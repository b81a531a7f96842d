import { type ErrorCode, errorTable, SlipwayError } from "@slipway/contract";
import { describe, expect, test } from "vitest";
import type { DialectName } from "./dialect.ts";
import { dialects } from "./index.ts";
import { readStream, writeStream } from "./testing.ts";

const names = Object.keys(dialects) as DialectName[];
const encode = (text: string) => new TextEncoder().encode(text);

describe("an error in the vendor's words", () => {
  const table: [ErrorCode, string, string, string][] = [
    ["invalid_request", "invalid_request_error", "invalid_request_error", "invalid_request"],
    ["run_token_invalid", "authentication_error", "authentication_error", "invalid_api_key"],
    ["missing_key", "authentication_error", "authentication_error", "invalid_api_key"],
    ["model_key_refused", "authentication_error", "authentication_error", "invalid_api_key"],
    ["budget_exhausted", "billing_error", "insufficient_quota", "insufficient_quota"],
    ["role_forbidden", "permission_error", "permission_error", "permission_denied"],
    ["unknown_model", "not_found_error", "not_found_error", "model_not_found"],
    ["too_large", "request_too_large", "invalid_request_error", "too_large"],
    ["model_rate_limited", "rate_limit_error", "rate_limit_error", "rate_limit_exceeded"],
    ["model_overloaded", "overloaded_error", "server_error", "server_is_overloaded"],
    ["model_timeout", "timeout_error", "server_error", "model_timeout"],
    ["model_unreachable", "api_error", "server_error", "model_unreachable"],
    ["run_ended", "invalid_request_error", "invalid_request_error", "run_ended"],
  ];
  test.each(table)("%s", (code, anthropicType, openaiType, openaiCode) => {
    const error = new SlipwayError(code, "It went wrong.");
    const message = `It went wrong. [${code}]`;
    expect(dialects.anthropic.writeError(error)).toEqual({ type: "error", error: { type: anthropicType, message } });
    const openai = { error: { type: openaiType, message, param: null, code: openaiCode } };
    expect(dialects.chat.writeError(error)).toEqual(openai);
    expect(dialects.responses.writeError(error)).toEqual(openai);
  });
});

describe.each(names)("%s", (name) => {
  const dialect = dialects[name];
  const begun = writeStream(dialect, [
    { type: "start", id: "resp_1", model: "m" },
    { type: "text", text: "some words" },
  ]);

  test("a stream that is broken off reads as a failure, whatever the error", () => {
    for (const code of Object.keys(errorTable) as ErrorCode[]) {
      const last = dialect.writeStreamError(new SlipwayError(code, "It went wrong."));
      const events = readStream(dialect, [encode(begun + last)]);
      expect(events.at(-1)).toMatchObject({ type: "failure", message: expect.stringContaining(`[${code}]`) });
      const meter = dialect.meter();
      meter.push(encode(begun + last));
      expect(meter).toMatchObject({ complete: false, failure: { message: expect.stringContaining(code) } });
    }
  });

  test("a stream that was cut inside a line and is broken off is never an answer", () => {
    const last = dialect.writeStreamError(new SlipwayError("stream_truncated", "It went wrong."));
    const cut = encode(begun.slice(0, -10) + last);
    expect(() => readStream(dialect, [cut])).toThrow(expect.objectContaining({ code: "invalid_answer" }));
  });

  test("nothing follows a failure", () => {
    const end = writeStream(dialect, [
      { type: "start", id: "resp_2", model: "m" },
      { type: "stop", reason: "end" },
    ]);
    const last = dialect.writeStreamError(new SlipwayError("model_overloaded", "It went wrong."));
    const events = readStream(dialect, [encode(begun + last), encode(end)]);
    expect(events.map(({ type }) => type)).not.toContain("stop");
  });

  test("what follows an end in the same piece takes nothing away from it", () => {
    const end = writeStream(dialect, [
      { type: "start", id: "resp_1", model: "m" },
      { type: "stop", reason: "end" },
    ]);
    const events = readStream(dialect, [encode(`${end}data: nonsense\n\n`), encode("data: nonsense\n\n")]);
    expect(events.at(-1)).toEqual({ type: "stop", reason: "end" });
  });

  test("an endpoint's own failure keeps its status in every dialect", () => {
    for (const status of [400, 401, 403, 404, 429, 500, 529]) {
      const written = writeStream(dialect, [{ type: "failure", status, message: "busy" }]);
      expect(readStream(dialect, [encode(written)])).toEqual([{ type: "failure", status, message: "busy" }]);
    }
  });

  test("a line that is no JSON, or not of the dialect, is an invalid answer", () => {
    for (const line of ["{", "nonsense", "<html>", '"text"', "5"]) {
      expect(() => readStream(dialect, [encode(`data: ${line}\n\n`)])).toThrow(
        expect.objectContaining({ code: "invalid_answer" }),
      );
    }
  });

  test("a body that is not of the dialect is an invalid answer", () => {
    for (const body of [null, "text", [], {}, { id: 5 }, { choices: [], content: [], output: [] }]) {
      expect(() => dialect.readResponse(body)).toThrow(expect.objectContaining({ code: "invalid_answer" }));
    }
  });

  test("events without a stop are no whole response", () => {
    const events = [{ type: "start", id: "1", model: "m" } as const, { type: "text", text: "some" } as const];
    const request = dialect.readRequest({ model: "m", messages: [], input: [] });
    expect(() => dialect.writeResponse(request, events)).toThrow(expect.objectContaining({ code: "stream_truncated" }));
  });
});
