import type { IncomingHttpHeaders, ServerResponse } from "node:http";
import { type ErrorCode, type ModelRole, type RunId, SlipwayError, type Usage } from "@slipway/contract";
import { prepare } from "../admit/prepare.ts";
import { countCost, endOf, type Underway } from "../deliver/bill.ts";
import { type Delivered, deliverStream, deliverWhole } from "../deliver/deliver.ts";
import type { Health, ResponseEnd } from "../deliver/health.ts";
import { asSlipwayError } from "../deliver/pass-stream.ts";
import type { SettledResponse } from "../deliver/responses.ts";
import type { AgentDialect, AgentDialectName } from "../dialects/dialect.ts";
import { reserve } from "../pay/budget.ts";
import type { Estimates } from "../pay/estimates.ts";
import { paidTokens } from "../pay/funds.ts";
import { patient } from "../pay/patience.ts";
import type { Clock, Ledger, Settlement } from "../ports/ports.ts";
import { sendWithRetries } from "../send/send.ts";
import type { Send } from "../send/upstream.ts";
import { costOf } from "../settings/prices.ts";
import type { Route } from "../settings/routes.ts";
import type { GatewaySettings } from "../settings/settings.ts";

export interface ExchangeParts {
  readonly settings: GatewaySettings;
  readonly ledger: Ledger;
  readonly send: Send;
  readonly health: Health;
  readonly clock: Clock;
  readonly logger: (line: GatewayLogLine) => void;
  /** Aborts when the gateway closes. Whoever opens the books next settles what is missing in them as lost. */
  readonly closing: AbortSignal;
  /** Receives unexpected errors. */
  readonly onDefect: (error: unknown) => void;
}

/** An agent's model request. */
export interface ModelCall {
  readonly run: RunId;
  readonly routes: readonly Route[];
  readonly estimates: Estimates;
  readonly dialect: AgentDialect;
  /** Body fields that stand in the request's path. */
  readonly fields: Readonly<Record<string, unknown>>;
  readonly headers: IncomingHttpHeaders;
  readonly body: Buffer;
  readonly response: ServerResponse;
  /** Ends the exchange. Its reason is a `SlipwayError`. */
  readonly signal: AbortSignal;
  onSettled(response: SettledResponse, startedAt: number): void;
}

/** One line per model request. It has the prompt only if the settings ask for it. */
export interface GatewayLogLine {
  readonly at: number;
  readonly run: RunId;
  readonly role: ModelRole;
  readonly model: string;
  readonly dialect: AgentDialectName;
  /** The status that the agent saw. */
  readonly status: number;
  readonly end: ResponseEnd;
  readonly code: ErrorCode | undefined;
  readonly usage: Usage;
  readonly microUsd: number;
  readonly estimated: boolean;
  readonly retries: number;
  /** Time until the endpoint's answer began. */
  readonly firstByteMs: number | undefined;
  readonly totalMs: number;
  readonly prompt?: string;
}

/**
 * Takes one request to its endpoint and the answer back, then settles the cost. Throws when it refuses a request before
 * it costs anything; reports later failures to the agent itself.
 */
export async function exchange(parts: ExchangeParts, call: ModelCall): Promise<void> {
  const startedAt = parts.clock.now();
  const prepared = prepare(parts.settings, call.routes, call);
  const { price, endpoint } = prepared.route;
  const { run, estimates, signal } = call;
  using reservation = await reserve(parts.ledger, { run, price, estimates, signal, ...prepared });
  parts.health.begin(endpoint.provider);
  const meter = prepared.dialect.meter();
  const progress = { startedAt, retries: 0, sentAt: undefined, firstByteMs: undefined, meter };
  const { error, close } = await answerAgent(parts, call, { prepared, reservation, progress });
  if (error?.code === "internal") parts.onDefect(error.cause ?? error);
  const bill = await settle(parts, call, { prepared, reservation, progress, error });
  close();
  log(parts, call, { prepared, progress, bill });
}

async function answerAgent(parts: ExchangeParts, call: ModelCall, underway: Underway): Promise<Delivered> {
  const { settings, send, health, clock } = parts;
  const { dialect, response, signal } = call;
  const { prepared, reservation, progress } = underway;
  const onSent = () => {
    progress.sentAt = clock.now();
  };
  const onRetry = () => {
    progress.sentAt = undefined;
    progress.retries++;
    health.retried(prepared.route.endpoint.provider);
  };
  try {
    const { retries } = settings;
    const { lowerLimit } = reservation;
    const request = lowerLimit === undefined ? prepared.upstream : prepared.limitOutput(lowerLimit);
    const answer = await sendWithRetries(send, request, { retries, signal, clock, onSent, onRetry });
    progress.firstByteMs = clock.now() - progress.startedAt;
    const delivery = { prepared, dialect, response, reservation, meter: progress.meter };
    const delivered = await (prepared.streamed ? deliverStream(answer, delivery) : deliverWhole(answer, delivery));
    const isCut = lowerLimit !== undefined && progress.meter.stopReason === "max_tokens";
    return { ...delivered, error: delivered.error ?? (isCut ? cutByBudget(lowerLimit) : undefined) };
  } catch (cause) {
    const error = asSlipwayError(cause);
    return { error, close: () => sendError(response, dialect, error) };
  }
}

/** The agent has an answer that its model wanted to continue. */
function cutByBudget(tokens: number): SlipwayError {
  return new SlipwayError("budget_exhausted", `the run can pay for ${tokens} tokens, but the answer needs more`);
}

type Bill = Pick<Settlement, "usage" | "microUsd" | "estimated"> & Omit<SettledResponse, "refused" | "paid">;

/** Settles before the agent sees the end of its answer. */
async function settle(
  { ledger, health, clock, closing }: ExchangeParts,
  { run, onSettled }: ModelCall,
  { error, ...underway }: Underway & { readonly error: SlipwayError | undefined },
): Promise<Bill> {
  const { prepared, reservation, progress } = underway;
  const { role, name, price, endpoint } = prepared.route;
  const { usage, estimated } = countCost(underway, error, clock.now());
  const microUsd = costOf(usage, price);
  const ending = { end: endOf(error, progress), code: error?.code };
  const settlement = { run, role, model: name, usage, microUsd, estimated, end: ending.end };
  try {
    await patient(ledger, closing).settle({ request: reservation.request, ...settlement });
  } finally {
    health.end(endpoint.provider, { ...ending, usage, microUsd });
  }
  const ended = { ...ending, at: clock.now() };
  const { inputTokens } = prepared;
  const paid = paidTokens(usage, { inputTokens, neededTokens: reservation.neededTokens });
  onSettled({ ...ended, paid, refused: progress.meter.stopReason === "refusal" }, progress.startedAt);
  return { ...ended, usage, microUsd, estimated };
}

function log(
  { settings, logger }: ExchangeParts,
  { run, dialect, response, body }: ModelCall,
  { prepared, progress, bill }: Pick<Underway, "prepared" | "progress"> & { readonly bill: Bill },
): void {
  const { role, name } = prepared.route;
  const { retries, firstByteMs, startedAt } = progress;
  logger({
    run,
    role,
    model: name,
    dialect: dialect.name,
    status: response.statusCode,
    ...bill,
    retries,
    firstByteMs,
    totalMs: bill.at - startedAt,
    ...(settings.logPrompts ? { prompt: body.toString("utf8") } : {}),
  });
}

/** Writes a refusal in the agent's dialect. Clients must not retry unless told when: the gateway already has. */
export function sendError(response: ServerResponse, dialect: AgentDialect, error: SlipwayError): void {
  if (response.headersSent || response.destroyed) return void response.destroy();
  const retries = String(response.hasHeader("retry-after"));
  response.writeHead(error.status, { "content-type": "application/json", "x-should-retry": retries });
  response.end(JSON.stringify(dialect.writeError(error)));
}
