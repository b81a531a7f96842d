import type { IncomingMessage, ServerResponse } from "node:http";
import { hasCode, SlipwayError } from "@slipway/contract";
import { readBody } from "@slipway/host";
import { parseBody } from "../admit/prepare.ts";
import type { Asked } from "../dialects/index.ts";
import { estimateInputTokens } from "../pay/request-cost.ts";
import { type ExchangeParts, exchange } from "./exchange.ts";
import type { RunEntry } from "./runs.ts";

interface ModelHttpRequest {
  readonly run: RunEntry;
  readonly asked: Asked;
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
}

const maxRequestsPerRun = 1024;
const maxBodyBytes = 32 * 1024 * 1024;
const bodyLimits = {
  maxBytes: maxBodyBytes,
  droppedBytes: maxBodyBytes,
  limitMs: 60_000,
  late: "invalid_request",
} as const;
const maxBodyBytesPerRun = 256 * 1024 * 1024;
/** The minimum charge per request. */
const leastBodyBytes = 4096;

/** Runs one exchange with a model. It ends when the client goes away, the run is closed, or its time is up. */
export async function answerModelCall(parts: ExchangeParts, call: ModelHttpRequest): Promise<void> {
  const { run, asked, request, response } = call;
  if (run.closed !== undefined) throw run.closed;
  if (run.exchanges.size >= maxRequestsPerRun) {
    throw new SlipwayError("model_rate_limited", `a run has at most ${maxRequestsPerRun} requests at once`);
  }
  const controller = new AbortController();
  const { totalMs } = parts.settings.timeouts;
  const late = () => controller.abort(new SlipwayError("model_timeout", `the request took over ${totalMs} ms`));
  const timer = setTimeout(late, totalMs);
  response.once("close", () => {
    if (!response.writableFinished) controller.abort(new SlipwayError("aborted", "the client went away"));
  });
  const ended = Promise.withResolvers<void>();
  run.exchanges.set(controller, ended.promise);
  try {
    using taken = await takeBody(call);
    const { id, routes, estimates, responses } = run;
    const agent = { headers: request.headers, body: taken.body, response, signal: controller.signal };
    const { dialect, fields } = asked;
    await exchange(parts, { run: id, routes, estimates, dialect, fields, ...agent, onSettled: responses.note });
  } catch (error) {
    if (hasCode(error, "budget_exhausted")) run.responses.noteUnpayable();
    throw error;
  } finally {
    clearTimeout(timer);
    run.exchanges.delete(controller);
    ended.resolve();
  }
}

/** Answers with an estimate: a free question is not worth a request to the endpoint. */
export async function countTokens(call: ModelHttpRequest): Promise<void> {
  const { run, asked, response } = call;
  if (run.closed !== undefined) throw run.closed;
  using taken = await takeBody(call);
  const { inputTokens: tokens } = estimateInputTokens(parseBody(taken.body, asked.fields), taken.body.length);
  answerJson(response, asked.dialect.name === "google" ? { totalTokens: tokens } : { input_tokens: tokens });
}

/** Lists the run's models in a shape that every vendor's clients read. */
export function listModels({ routes }: RunEntry, response: ServerResponse): void {
  const models = new Map(routes.map(({ name, model, endpoint }) => [name, { model, provider: endpoint.provider }]));
  const data = [...models].map(([name, { model, provider }]) => ({
    id: model,
    object: "model",
    type: "model",
    display_name: name,
    created: 0,
    created_at: "1970-01-01T00:00:00Z",
    owned_by: provider,
  }));
  answerJson(response, { object: "list", data, has_more: false, first_id: data[0]?.id, last_id: data.at(-1)?.id });
}

export function answerJson(response: ServerResponse, body: object): void {
  response.writeHead(200, { "content-type": "application/json" }).end(JSON.stringify(body));
}

/** A body, charged to the run until it is disposed. */
async function takeBody(call: ModelHttpRequest): Promise<Disposable & { readonly body: Buffer }> {
  const { run, request, response } = call;
  let bytes = 0;
  const release = () => {
    run.bodyBytes -= bytes;
  };
  try {
    const onBytes = (count: number) => {
      bytes += count;
      run.bodyBytes += count;
      if (run.bodyBytes <= maxBodyBytesPerRun) return;
      throw new SlipwayError("model_rate_limited", "the run has too many bytes of requests open");
    };
    const body = await readBody(request, { ...bodyLimits, onBytes });
    const waitMs = run.bodyRate.take(Math.max(bytes, leastBodyBytes));
    if (waitMs > 0) {
      response.setHeader("retry-after", Math.ceil(waitMs / 1000));
      throw new SlipwayError("model_rate_limited", "the run sends too much");
    }
    return { body, [Symbol.dispose]: release };
  } catch (error) {
    release();
    throw error;
  }
}
