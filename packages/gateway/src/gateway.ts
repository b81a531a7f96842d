import process from "node:process";
import {
  type Control,
  type End,
  type EndReason,
  type ModelRole,
  type NumberedEvent,
  type RunId,
  type RunTask,
  type RunTaskInput,
  runTaskSchema,
  SlipwayError,
} from "@slipway/contract";
import { createRunTokens } from "./admit/run-tokens.ts";
import { createCassettes } from "./cassettes/cassettes.ts";
import { createRunChannel, type RunChannel } from "./channel/channel.ts";
import { createHealth, type ProviderHealth } from "./deliver/health.ts";
import { createResponses, type SettledResponse } from "./deliver/responses.ts";
import type { GatewayLogLine } from "./listen/exchange.ts";
import { createRuns } from "./listen/runs.ts";
import { createGatewayServer, type GatewayServer } from "./listen/server.ts";
import { neededToGoOn } from "./pay/funds.ts";
import { patient, unlessAborted } from "./pay/patience.ts";
import type { Balance, Clock, Ledger, RunLog } from "./ports/ports.ts";
import { createUpstream } from "./send/upstream.ts";
import { type Route, resolveRoutes } from "./settings/routes.ts";
import type { GatewaySettings } from "./settings/settings.ts";

export interface GatewayOptions {
  readonly settings: GatewaySettings;
  readonly ledger: Ledger;
  readonly log: RunLog;
  /** Run tokens derive from it. Keep it the same to keep tokens valid over a restart. */
  readonly secret: string;
  readonly clock?: Clock;
  readonly logger?: (line: GatewayLogLine) => void;
  /** Receives unexpected errors. Defaults to a process warning. */
  readonly onDefect?: (error: unknown) => void;
}

/**
 * The one place that talks to models. Disposing it aborts all requests. The caller owns ledger and log. A request passes
 * the rooms in order: listen/ reads it, admit/ identifies and guards it, pay/ reserves its money, send/ asks the endpoint,
 * and deliver/ passes the answer on and settles. listen/exchange.ts is the list of these steps.
 */
export interface Gateway extends GatewayServer {
  /** Opens a run with agents. After a restart, open it again. Fails when one of its models cannot work. */
  openRun(grant: RunGrant): Promise<OpenRun>;
  /** Opens calls of the host itself: any role, no sandbox, no run channel. */
  openCalls(grant: Grant): Promise<OpenCalls>;
  health(): readonly ProviderHealth[];
  /** Gives access to the counters of `GET /health`. Never given to a sandbox. */
  readonly hostToken: string;
}

export interface Grant {
  readonly id: RunId;
  readonly roles: readonly ModelRole[];
  readonly budgetMicroUsd: number;
}

export interface RunGrant extends Grant {
  readonly task: RunTaskInput;
}

/** Disposing it closes it: requests are refused until it is opened again. */
export interface OpenCalls extends AsyncDisposable {
  readonly token: string;
  /** Returns `provider/model`. Fails with `role_forbidden`. */
  model(role: ModelRole): string;
  balance(): Promise<Balance>;
  /** Ignores a lower budget. */
  raiseBudget(budgetMicroUsd: number): Promise<void>;
  /** How the last model response ended, by the gateway's own count. Undefined before the first. */
  lastResponse(): SettledResponse | undefined;
  /** The last response that failed because of its model, or what an earlier process lost, until a model answers. */
  lastFailure(): SettledResponse | undefined;
  /** Whether the ledger has too little left to continue. Waits for open requests; retries until the signal aborts. */
  ranOut(signal?: AbortSignal): Promise<boolean>;
  /** Whether a request was refused since the run was opened because too little was left. */
  hadUnpayable(): boolean;
  /** Resolves when models have failed repeatedly without an answer in between. */
  readonly gaveUp: Promise<SettledResponse>;
}

export interface OpenRun extends OpenCalls {
  readonly task: RunTask;
  events(options?: { readonly after?: number; readonly signal?: AbortSignal }): AsyncIterable<NumberedEvent>;
  send(control: Control): Promise<void>;
  /** From then on, model requests are refused with `run_ended`. */
  readonly ended: Promise<End>;
  /** Ends the run on behalf of the host, unless it has ended. */
  fail(reason: EndReason, message: string): Promise<void>;
  /** When the runner was last heard from. */
  lastSeen(): number | undefined;
}

export function createGateway(options: GatewayOptions): Gateway {
  const { settings, ledger, log, secret, clock = systemClock, logger = () => {}, onDefect = warn } = options;
  const tokens = createRunTokens(secret);
  const runs = createRuns(clock);
  const channel = createRunChannel({ log, clock });
  const health = createHealth(settings.endpoints.map(({ provider }) => provider));
  const upstream = createUpstream(settings.timeouts);
  const send = settings.cassettes === undefined ? upstream.send : createCassettes(settings.cassettes, upstream.send);
  const closing = new AbortController();
  const server = createGatewayServer({
    settings,
    ledger,
    send,
    health,
    clock,
    logger,
    runs,
    tokens,
    channel,
    onDefect,
    closing: closing.signal,
  });

  const open = async ({ id, budgetMicroUsd }: Grant, routes: readonly Route[]): Promise<OpenCalls> => {
    await ledger.open(id, budgetMicroUsd);
    const { spentMicroUsd, reservedMicroUsd } = await ledger.balance(id);
    const lost = { end: "truncated", code: "model_unreachable", at: clock.now() } as const;
    const responses = createResponses(spentMicroUsd + reservedMicroUsd > 0 ? lost : undefined);
    const run = runs.add({ id, routes, responses });
    return {
      token: tokens.of(id),
      model: (role) => modelOf(routes, role),
      balance: () => ledger.balance(id),
      raiseBudget: (microUsd) => ledger.open(id, microUsd),
      lastResponse: () => responses.last,
      lastFailure: () => responses.lastFailure,
      async ranOut(signal = closing.signal) {
        const leaving = AbortSignal.any([closing.signal, signal]);
        await unlessAborted(run.quiet(), leaving);
        leaving.throwIfAborted();
        const leftMicroUsd = await patient(ledger, leaving).left(id);
        return leftMicroUsd < neededToGoOn(routes, responses.paid);
      },
      hadUnpayable: () => responses.hadUnpayable,
      gaveUp: responses.gaveUp,
      [Symbol.asyncDispose]: async () => runs.remove(id),
    };
  };
  return {
    ...server,
    openCalls: async (grant) => open(grant, resolveRoutes(settings, grant.roles)),
    async openRun(grant) {
      const task = parseTask(grant);
      const calls = await open(grant, resolveRoutes(settings, grant.roles));
      return withChannel(grant.id, task, calls, channel, (end) => runs.close(grant.id, "run_ended", end));
    },
    health: health.snapshot,
    hostToken: tokens.host,
    async [Symbol.asyncDispose]() {
      closing.abort(new SlipwayError("aborted", "the gateway closes"));
      await server[Symbol.asyncDispose]();
      for (const id of runs.ids()) {
        channel.close(id);
        runs.remove(id);
      }
      await upstream[Symbol.asyncDispose]();
    },
  };
}

async function withChannel(
  id: RunId,
  task: RunTask,
  calls: OpenCalls,
  channel: RunChannel,
  close: (message: string) => void,
): Promise<OpenRun> {
  try {
    await channel.open({ id, task });
  } catch (error) {
    await calls[Symbol.asyncDispose]();
    throw error;
  }
  const ended = channel.ended(id);
  // Callers need not await the end: an unhandled rejection must not crash them.
  ended.then(({ reason }) => close(`the run has ended: ${reason}`)).catch(() => {});
  return {
    ...calls,
    task,
    events: (wanted) => channel.events(id, wanted),
    send: (control) => channel.send(id, control),
    ended,
    fail: (reason, message) => channel.fail(id, reason, message),
    lastSeen: () => channel.lastSeen(id),
    async [Symbol.asyncDispose]() {
      channel.close(id);
      await calls[Symbol.asyncDispose]();
    },
  };
}

/** The judge's verdicts mean something only if no agent can ask for them. */
function parseTask({ roles, task }: RunGrant): RunTask {
  if (roles.includes("judge")) throw new SlipwayError("role_forbidden", "runs with agents cannot have the judge");
  const parsed = runTaskSchema.safeParse(task);
  if (parsed.success) return parsed.data;
  const mistakes = parsed.error.issues.map((issue) => `task.${issue.path.join(".")}: ${issue.message}`);
  throw new SlipwayError("invalid_request", mistakes.join("; "));
}

function modelOf(routes: readonly Route[], role: ModelRole): string {
  const route = routes.find((candidate) => candidate.role === role);
  if (route === undefined) throw new SlipwayError("role_forbidden", `the run does not have the role ${role}`);
  return route.name;
}

const systemClock: Clock = { now: () => Date.now() };

/** A defect breaks its own request, not the runs of others. */
function warn(error: unknown): void {
  process.emitWarning(error instanceof Error ? error : String(error));
}
