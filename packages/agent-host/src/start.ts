import type { Duplex } from "node:stream";
import {
  type Control,
  type End,
  type ExecId,
  type NumberedEvent,
  newId,
  type RunId,
  SlipwayError,
} from "@slipway/contract";
import type { Balance, Gateway, RunGrant } from "@slipway/gateway";
import type { Exec, Sandbox } from "@slipway/sandbox";
import { endOf } from "./end.ts";
import { openTransport, type RunTransport } from "./transport.ts";

export interface StartRun {
  readonly sandbox: Sandbox;
  readonly gateway: Pick<Gateway, "openRun" | "serve">;
  readonly grant: RunGrant;
  /** Variables for the runner and its agents. Never a key: a sandbox must hold none. */
  readonly env?: Readonly<Record<string, string>>;
  /** Id of the runner's first exec. Starting with the same id after a crash of the host attaches instead of running twice. */
  readonly exec?: ExecId;
  /** How long a runner may take to end by itself after a cancel or its time limit. */
  readonly graceMs?: number;
}

/** A run as the host sees it. Disposing it releases it: the runner inside continues, and `startRun` finds it again. */
export interface Run extends AsyncDisposable {
  readonly id: RunId;
  /** Events after number `after` (0: all), until the run has ended or `ended` fails. */
  events(options?: { readonly after?: number; readonly signal?: AbortSignal }): AsyncIterable<NumberedEvent>;
  /** Steers the run; resolves when the control is stored for the runner. A runner that ignores a cancel is ended. */
  send(control: Control): Promise<void>;
  balance(): Promise<Balance>;
  /** When the runner was last heard; undefined: not since the run was started or found. */
  lastSeen(): number | undefined;
  /** Settles once, after the runner and everything it started are gone. */
  readonly ended: Promise<End>;
}

function runnerCommand({ toolsDirectory }: Pick<Sandbox, "toolsDirectory">): string[] {
  return [`${toolsDirectory}/node/node`, `${toolsDirectory}/runner/runner.mjs`];
}

const defaultGraceMs = 15_000;

/**
 * Starts the runner in a sandbox that has its tool directories, and serves it the run channel and the models. What the
 * runner reports is a claim; how the run ended is decided here.
 */
export async function startRun(options: StartRun): Promise<Run> {
  const { sandbox, gateway, grant, env = {}, graceMs = defaultGraceMs } = options;
  await using parts = new AsyncDisposableStack();
  const released = new AbortController();
  const open = parts.use(await gateway.openRun(grant));
  const transport = await openTransport(sandbox);
  const serving = serveConnections(transport, (connection) => gateway.serve(connection, grant.id), released.signal);
  parts.defer(async () => {
    released.abort(new SlipwayError("aborted", "the run was released"));
    await transport[Symbol.asyncDispose]();
    await serving;
  });
  const start = (id: ExecId): Promise<Exec> =>
    sandbox.exec({
      id,
      argv: runnerCommand(sandbox),
      env: {
        ...env,
        ...transport.environment,
        SLIPWAY_RUN_TOKEN: open.token,
        SLIPWAY_TOOLS_DIR: sandbox.toolsDirectory,
      },
      background: true,
      timeoutMs: null,
    });
  const runner = { first: await start(options.exec ?? newId("exc")), restart: () => start(newId("exc")) };
  const limits = { totalMs: open.task.limits.totalMs, graceMs };
  const following = endOf({ runner, open, limits, signal: released.signal });
  // A failed `ended` must not be an unhandled rejection; it stops `events`, whose reader then asks for the end.
  const broken = new AbortController();
  following.ended.catch(() => broken.abort());
  const held = parts.move();
  return {
    id: grant.id,
    events: ({ signal = broken.signal, ...wanted } = {}) =>
      open.events({ ...wanted, signal: AbortSignal.any([signal, broken.signal]) }),
    async send(control) {
      if (control.type === "cancel") following.cancelled();
      await open.send(control);
    },
    balance: () => open.balance(),
    lastSeen: () => open.lastSeen(),
    ended: following.ended,
    async [Symbol.asyncDispose]() {
      await held.disposeAsync();
      await following.ended.catch(() => {});
    },
  };
}

/** The exec of a runner that is still running in the sandbox, for `startRun` to attach to. */
export async function findRunner(sandbox: Pick<Sandbox, "execs" | "toolsDirectory">): Promise<ExecId | undefined> {
  const execs = await sandbox.execs();
  return execs.find(({ argv, exit }) => exit === null && argv.join(" ") === runnerCommand(sandbox).join(" "))?.id;
}

async function serveConnections(
  transport: RunTransport,
  serve: (connection: Duplex) => void,
  signal: AbortSignal,
): Promise<void> {
  try {
    for await (const connection of transport.connections({ signal })) serve(connection);
  } catch (error) {
    if (!signal.aborted) throw error;
  }
}
