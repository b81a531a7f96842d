import process from "node:process";
import type { Duplex } from "node:stream";
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
import { createHealth, type ProviderHealth } from "./admit/health.ts";
import { createResponses, type SettledResponse } from "./admit/responses.ts";
import { createRunTokens } from "./admit/run-tokens.ts";
import { createRuns } from "./admit/runs.ts";
import { createCassettes } from "./cassettes/cassettes.ts";
import { createRunChannel, type RunChannel } from "./channel/index.ts";
import type { GatewayLogLine } from "./listen/exchange.ts";
import type { ListenAddress, Listener } from "./listen/listen.ts";
import { createGatewayServer } from "./listen/server.ts";
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
  /** Tokens of runs are made from it: one that stays the same keeps them valid over a restart. */
  readonly secret: string;
  readonly clock?: Clock;
  readonly logger?: (line: GatewayLogLine) => void;
  /** Something broke that is not expected to; without it, a warning of the process. */
  readonly onDefect?: (error: unknown) => void;
}

/** The one place that talks to models. Disposing it cuts what is under way; the ledger and the log are the caller's. */
export interface Gateway extends AsyncDisposable {
  /** Lets a run of agents in. After a restart it is opened again. Fails when one of its models can not work. */
  openRun(grant: RunGrant): Promise<OpenRun>;
  /** Lets calls of the host itself in: of any role, with no sandbox and no run channel. */
  openCalls(grant: Grant): Promise<OpenCalls>;
  /** Serves a connection whose other end is known to be that run's sandbox: a token of another run is refused on it. */
  serve(connection: Duplex, run: RunId): void;
  /** The client's end of a connection for calls of this process: no other one can reach it. */
  connect(): Duplex;
  /** Serves whoever comes; tokens tell who that is. */
  listen(address: ListenAddress): Promise<Listener>;
  health(): readonly ProviderHealth[];
  /** Opens the counters of `GET /health`. Never given to a sandbox. */
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

/** Disposing it lets go of it: it is refused until it is opened again. */
export interface OpenCalls extends AsyncDisposable {
  readonly token: string;
  /** `provider/model`; fails with `role_forbidden`. */
  model(role: ModelRole): string;
  balance(): Promise<Balance>;
  /** A lower budget changes nothing. */
  raiseBudget(budgetMicroUsd: number): Promise<void>;
  /** How the last model response ended, by the gateway's own count; undefined before there is one. */
  lastResponse(): SettledResponse | undefined;
  /** The last one whose model was to blame. Of a run that was open before, what was lost then counts as one, until a model answers. */
  lastFailure(): SettledResponse | undefined;
  /** Whether too little is left to go on, by the ledger, when none of its requests is under way. Asks until the signal aborts. */
  ranOut(signal?: AbortSignal): Promise<boolean>;
  /** Whether one of its requests was refused since it was opened, for what was left then. */
  hadUnpayable(): boolean;
  /** When the models have failed again and again, with no answer in between. */
  readonly gaveUp: Promise<SettledResponse>;
}

export interface OpenRun extends OpenCalls {
  readonly task: RunTask;
  events(options?: { readonly after?: number; readonly signal?: AbortSignal }): AsyncIterable<NumberedEvent>;
  send(control: Control): Promise<void>;
  /** From then on models are refused with `run_ended`. */
  readonly ended: Promise<End>;
  /** Ends the run by the host's will, unless it has ended. */
  fail(reason: EndReason, message: string): Promise<void>;
  /** When something last came from the runner. */
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
    openCalls: async (grant) => open(grant, resolveRoutes(settings, grant.roles)),
    async openRun(grant) {
      const task = parseTask(grant);
      const calls = await open(grant, resolveRoutes(settings, grant.roles));
      return withChannel(grant.id, task, calls, channel, (end) => runs.close(grant.id, "run_ended", end));
    },
    serve: server.serve,
    connect: server.connect,
    listen: server.listen,
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
  // Whoever does not ask for the end is not to crash by it.
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

/** The judge's verdicts are worth something only where no agent can ask for them. */
function parseTask({ roles, task }: RunGrant): RunTask {
  if (roles.includes("judge")) throw new SlipwayError("role_forbidden", "the judge is not given to runs with agents");
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

/** A defect breaks the request that met it; it does not end the runs of others. */
function warn(error: unknown): void {
  process.emitWarning(error instanceof Error ? error : String(error));
}
