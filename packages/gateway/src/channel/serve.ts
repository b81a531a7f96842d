import type { IncomingMessage, ServerResponse } from "node:http";
import { type HelloResponse, helloRequestSchema, runChannel, SlipwayError } from "@slipway/contract";
import { answer, answerError } from "./answer.ts";
import { parseBody, readRunBody } from "./intake.ts";
import type { LiveRun } from "./live-run.ts";
import type { Timers } from "./timers.ts";

/** Answers one request of a runner. */
export async function serve(run: LiveRun, request: IncomingMessage, response: ServerResponse, timers: Timers) {
  const url = URL.parse(request.url ?? "", "http://run");
  const kind = `${request.method} ${url?.pathname}`;
  run.seen();
  if (kind === "POST /run/events") return takeEvents(run, request, response);
  const waitMs = run.intake.ask();
  if (waitMs > 0) return answerLater(response, waitMs);
  switch (kind) {
    case "POST /run/hello":
      return answer(response, await greet(run, await readRunBody(request, maxHelloBytes, timers)));
    case "GET /run/control":
      return answer(response, { messages: await run.poll(readAfter(url), closeSignal(response)) });
    default:
      throw new SlipwayError("invalid_request", "the run channel has no such request");
  }
}

const maxHelloBytes = 4096;

async function greet(run: LiveRun, body: Buffer): Promise<HelloResponse> {
  const { version, instance } = parseBody(helloRequestSchema, body, "invalid_request");
  if (version !== runChannel.version) {
    const message = `the runner speaks version ${version} of the run channel, the host version ${runChannel.version}`;
    throw new SlipwayError("invalid_request", message);
  }
  run.hello(instance);
  return { run: run.id, task: run.task, next: await run.book.next() };
}

async function takeEvents(run: LiveRun, request: IncomingMessage, response: ServerResponse): Promise<void> {
  const claimed = await run.intake.read(request);
  if ("retryAfterMs" in claimed) return answerLater(response, claimed.retryAfterMs);
  answer(response, { next: await run.book.take(claimed.events) });
}

function answerLater(response: ServerResponse, waitMs: number): void {
  response.setHeader("retry-after", Math.ceil(waitMs / 1000));
  answerError(response, new SlipwayError("rate_limited", "the run sends too much"));
}

function readAfter(url: URL | null): number {
  const text = url?.searchParams.get("after") ?? "";
  if (!/^\d{1,9}$/.test(text)) throw new SlipwayError("invalid_request", "after: expected a sequence number");
  return Number(text);
}

function closeSignal(response: ServerResponse): AbortSignal {
  const controller = new AbortController();
  response.once("close", () => controller.abort());
  return controller.signal;
}
