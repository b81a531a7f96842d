import type { IncomingHttpHeaders, ServerResponse } from "node:http";
import { type ErrorCode, type ModelRole, type RunId, SlipwayError, type Usage } from "@slipway/contract";
import type { Answer } from "./answer.ts";
import { countUsage, noUsage, type Reservation, reserve } from "./budget.ts";
import { type Delivered, deliverStream, deliverWhole } from "./deliver.ts";
import type { Dialect, DialectName, Meter } from "./dialects/dialect.ts";
import type { Health, ResponseEnd } from "./health.ts";
import type { Clock, Ledger } from "./ports.ts";
import { type PreparedRequest, prepare } from "./prepare.ts";
import { costOf } from "./prices.ts";
import type { Route } from "./routes.ts";
import { sendWithRetries } from "./send.ts";
import type { GatewaySettings } from "./settings.ts";
import type { Send } from "./upstream.ts";

export interface ExchangeParts {
  readonly settings: GatewaySettings;
  readonly ledger: Ledger;
  readonly send: Send;
  readonly health: Health;
  readonly clock: Clock;
  readonly logger: (line: GatewayLogLine) => void;
}

/** An agent's request for a model. */
export interface ModelCall {
  readonly run: RunId;
  readonly routes: readonly Route[];
  readonly dialect: Dialect;
  readonly headers: IncomingHttpHeaders;
  readonly body: Buffer;
  readonly response: ServerResponse;
  /** Ends the exchange; its reason is a `SlipwayError`. */
  readonly signal: AbortSignal;
}

/** One line per model request. The prompt is there only when the settings say so. */
export interface GatewayLogLine {
  readonly at: number;
  readonly run: RunId;
  readonly role: ModelRole;
  readonly model: string;
  readonly dialect: DialectName;
  /** That the agent saw. */
  readonly status: number;
  readonly end: ResponseEnd;
  readonly code: ErrorCode | undefined;
  readonly usage: Usage;
  readonly microUsd: number;
  readonly estimated: boolean;
  readonly retries: number;
  /** Until the endpoint's answer began. */
  readonly firstByteMs: number | undefined;
  readonly totalMs: number;
  readonly prompt?: string;
}

/** How the last response of a run ended, to hold against what its agents say. */
export interface LastResponse {
  readonly end: ResponseEnd;
  readonly code: ErrorCode | undefined;
  readonly at: number;
}

/**
 * Takes one request to its endpoint and the answer back, and settles what it cost. What is refused before it costs
 * anything fails; everything later is told to the agent here.
 */
export async function exchange(parts: ExchangeParts, call: ModelCall): Promise<LastResponse> {
  const { settings, ledger, health, clock } = parts;
  const startedAt = clock.now();
  const prepared = prepare(settings, call.routes, call);
  const { endpoint, price, role, name } = prepared.route;
  const reservation = await reserve(ledger, { run: call.run, price, ...prepared });
  health.begin(endpoint.provider);
  const progress: Progress = { retries: 0, firstByteMs: undefined, meter: prepared.dialect.meter() };
  const { error, close } = await answerAgent(parts, call, prepared, reservation, progress, startedAt);

  const end = endOf(error, progress);
  const { usage, estimated } = bill(error, progress, prepared.inputTokens);
  const microUsd = costOf(usage, price);
  const code = error?.code;
  await ledger.settle({
    request: reservation.request,
    run: call.run,
    role,
    model: name,
    usage,
    microUsd,
    estimated,
    end,
  });
  health.end(endpoint.provider, { end, usage, microUsd, code });
  close();
  const at = clock.now();
  const { retries, firstByteMs } = progress;
  parts.logger({
    ...{ at, run: call.run, role, model: name, dialect: call.dialect.name, status: call.response.statusCode },
    ...{ end, code, usage, microUsd, estimated, retries, firstByteMs, totalMs: at - startedAt },
    ...(settings.logPrompts ? { prompt: call.body.toString("utf8") } : {}),
  });
  return { end, code, at };
}

interface Progress {
  retries: number;
  firstByteMs: number | undefined;
  readonly meter: Meter;
}

async function answerAgent(
  { settings, send, health, clock }: ExchangeParts,
  { dialect, response, signal }: ModelCall,
  prepared: PreparedRequest,
  reservation: Reservation,
  progress: Progress,
  startedAt: number,
): Promise<Delivered> {
  const onRetry = () => {
    progress.retries++;
    health.retried(prepared.route.endpoint.provider);
  };
  try {
    const { retries } = settings;
    const answer: Answer = await sendWithRetries(send, prepared.upstream, { retries, signal, clock, onRetry });
    progress.firstByteMs = clock.now() - startedAt;
    const delivery = { prepared, dialect, response, reservation, meter: progress.meter };
    return await (prepared.streamed ? deliverStream(answer, delivery) : deliverWhole(answer, delivery));
  } catch (error) {
    const failure = asSlipwayError(error);
    return { error: failure, close: () => sendError(response, dialect, failure) };
  }
}

/** A refusal in the words of the agent's dialect. The gateway has tried again already: clients are told not to. */
export function sendError(response: ServerResponse, dialect: Dialect, error: SlipwayError): void {
  if (response.headersSent || response.destroyed) return void response.destroy();
  response.writeHead(error.status, { "content-type": "application/json", "x-should-retry": "false" });
  response.end(JSON.stringify(dialect.writeError(error)));
}

const cutCodes: ReadonlySet<ErrorCode> = new Set(["aborted", "budget_exhausted", "run_ended"]);

function endOf(error: SlipwayError | undefined, { firstByteMs, meter }: Progress): ResponseEnd {
  if (error === undefined) return "complete";
  if (cutCodes.has(error.code)) return "cut";
  return firstByteMs === undefined || meter.failure !== undefined ? "failed" : "truncated";
}

/**
 * An answer that began is billed by what came of it. A request that this side gave up on may be answered and billed
 * all the same, so its input counts. One that the endpoint refused or dropped costs nothing.
 */
function bill(error: SlipwayError | undefined, { firstByteMs, meter }: Progress, inputTokens: number) {
  if (firstByteMs !== undefined) return countUsage(meter, inputTokens);
  const gaveUp = error !== undefined && (cutCodes.has(error.code) || error.code === "model_timeout");
  return gaveUp ? { usage: { ...noUsage, input: inputTokens }, estimated: true } : { usage: noUsage, estimated: false };
}

function asSlipwayError(error: unknown): SlipwayError {
  if (error instanceof SlipwayError) return error;
  return new SlipwayError("internal", "the gateway failed", { cause: error });
}
