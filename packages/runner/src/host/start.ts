import type { Duplex } from "node:stream";
import { type ExecId, newId, type RunEndReason, type RunId, SlipwayError } from "@slipway/contract";
import type { Gateway, OpenRun, RunGrant } from "@slipway/gateway";
import type { Exec, HostChannel, Sandbox } from "@slipway/sandbox";

export interface StartRun {
  readonly sandbox: Sandbox;
  readonly gateway: Pick<Gateway, "openRun" | "serve">;
  readonly grant: RunGrant;
  /** Variables for the runner and its agents. Never a key: a sandbox is to hold none. */
  readonly env?: Readonly<Record<string, string>>;
  /** Of the runner's first exec. A start with the same one, after a crash of the host, attaches instead of running twice. */
  readonly exec?: ExecId;
}

/** A run as the host sees it. Disposing it lets go of it; the runner inside goes on, and `startRun` finds it again. */
export interface Run extends AsyncDisposable {
  readonly id: RunId;
  readonly open: OpenRun;
  /** Settles once, after the runner and everything it started is gone. */
  readonly ended: Promise<RunEnd>;
}

export interface RunEnd {
  readonly reason: RunEndReason;
  readonly message: string;
}

/** Where the provider's tool directories `node` and `runner` are inside. */
export const runnerCommand = ["/opt/node/node", "/opt/runner/runner.mjs"] as const;

/** A runner that dies goes on from its last finished step; one that keeps dying is given up. */
const maxRestarts = 3;

/**
 * Starts the runner in a sandbox that has its tool directories, and serves it the run channel and the models. What the
 * runner says is a claim; how the run ended is decided here.
 */
export async function startRun({ sandbox, gateway, grant, env = {}, exec }: StartRun): Promise<Run> {
  const released = new AbortController();
  const open = await gateway.openRun(grant);
  const channel = await sandbox.openChannel();
  const serving = serveConnections(channel, (connection) => gateway.serve(connection, grant.id), released.signal);
  const start = (id: ExecId) =>
    sandbox.exec({
      id,
      argv: [...runnerCommand],
      env: { ...env, SLIPWAY_RUN_TOKEN: open.token },
      background: true,
      timeoutMs: null,
    });
  const first = await start(exec ?? newId("exc"));
  const ended = follow({ first, restart: () => start(newId("exc")), open, signal: released.signal });
  // Whoever does not ask for the end does not want to crash by it.
  ended.catch(() => {});
  return {
    id: grant.id,
    open,
    ended,
    async [Symbol.asyncDispose]() {
      released.abort(new SlipwayError("aborted", "the run was let go of"));
      await channel[Symbol.asyncDispose]();
      await serving;
      await ended.catch(() => {});
      await open[Symbol.asyncDispose]();
    },
  };
}

async function serveConnections(
  channel: HostChannel,
  serve: (connection: Duplex) => void,
  signal: AbortSignal,
): Promise<void> {
  try {
    for await (const connection of channel.connections({ signal })) serve(connection);
  } catch (error) {
    if (!signal.aborted) throw error;
  }
}

interface Following {
  readonly first: Exec;
  restart(): Promise<Exec>;
  readonly open: OpenRun;
  readonly signal: AbortSignal;
}

/** Waits for the run's end, starting the runner again when it dies before. */
async function follow({ first, restart, open, signal }: Following): Promise<RunEnd> {
  let exec = first;
  for (let restarts = 0; ; restarts++) {
    const exit = exec.wait({ signal });
    // The loser of the race may fail later, when the run is let go of.
    exit.catch(() => {});
    const claimed = await Promise.race([open.ended, exit.then(() => undefined)]);
    if (claimed !== undefined || restarts === maxRestarts || (await open.hasEnded())) break;
    exec = await restart();
  }
  const end = (await open.hasEnded()) ? await open.ended : await lost(open);
  await exec.kill();
  return verified(end, open);
}

async function lost(open: OpenRun): Promise<RunEnd> {
  await open.fail("runner_lost", "the runner ended without a word, more than once");
  return open.ended;
}

/** An agent whose last answer was cut off may not know it, and a hostile one may not say it: the gateway does. */
function verified(end: RunEnd, open: OpenRun): RunEnd {
  if (end.reason !== "completed" || open.lastResponse()?.end !== "truncated") return end;
  return { reason: "truncated", message: "the model's last answer was cut off" };
}
