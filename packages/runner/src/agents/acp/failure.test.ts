import { RequestError } from "@agentclientprotocol/sdk";
import { expect, it } from "vitest";
import { SessionLost } from "./conversation.ts";
import { failureOf } from "./failure.ts";
import { endOfFailure, sessionFailure } from "./session-failure.ts";

const ended = { exit: Promise.resolve({ code: 3, signal: null }), complaint: () => "out of luck" };
const internal = (message: string) => RequestError.internalError(undefined, message);

it.each<[string, unknown, boolean, Record<string, unknown>]>([
  ["a broken connection before an answer", internal("Connection reset by server"), false, { reason: "network" }],
  ["a broken connection after some text", internal("Connection reset by server"), true, { reason: "truncated" }],
  ["the gateway's code", internal("no more [budget_exhausted]"), false, { reason: "budget" }],
  [
    "a code in the details",
    new RequestError(-32603, "Internal error", { message: "cut [stream_truncated]" }),
    true,
    { reason: "truncated" },
  ],
  [
    "a broken answer of a model",
    new RequestError(500, "Incomplete JSON segment at the end"),
    true,
    { reason: "truncated" },
  ],
  [
    "a model's status in the place of a code",
    new RequestError(429, "Try again later."),
    false,
    { reason: "rate_limited" },
  ],
  ["a demand for credentials", RequestError.authRequired(), false, { reason: "auth" }],
  ["a conversation that is gone", new SessionLost("gone"), false, { reason: "session_lost" }],
  [
    "a program that is gone",
    new Error("ACP connection closed"),
    true,
    { reason: "crashed", message: expect.stringContaining("out of luck") },
  ],
  ["anything else", internal("hm"), false, { reason: "internal" }],
])("%s has its own end", async (_name, error, begun, end) => {
  expect(await failureOf(error, ended, begun)).toMatchObject(end);
});

it.each<[string, string, boolean, Record<string, unknown>]>([
  ["connection", "stream disconnected before completion: closed", true, { reason: "truncated" }],
  ["service", "stream disconnected before completion: error sending request", false, { reason: "network" }],
  ["connection", "exceeded retry limit, last status: 429 Too Many Requests", false, { reason: "rate_limited" }],
  ["request", "unexpected status 402 Payment Required: spent [budget_exhausted]", false, { reason: "budget" }],
  ["service", "Incomplete response returned, reason: content_filter", true, { reason: "refused" }],
  ["service", "We are at capacity", false, { reason: "overloaded" }],
  ["a new one", "Something", false, { reason: "internal" }],
])("a failure of category %s that says %j is not an answer", (category, title, begun, end) => {
  const meta = { jetbrains: { air: { version: 1, sessionFailure: { severity: "error", category, title } } } };
  const failure = sessionFailure(meta);
  expect(failure && endOfFailure(failure, begun)).toMatchObject(end);
});

it("other details of a response are no failure", () => {
  expect(sessionFailure(undefined)).toBeUndefined();
  expect(sessionFailure({ jetbrains: { air: { version: 1 } } })).toBeUndefined();
});
