import { join } from "node:path";
import { type ClaimedEnd, type RunId, type RunnerEvent, type RunTask, SlipwayError } from "@slipway/contract";
import type { Driver, GatewayAddress } from "./agents/driver.ts";
import type { Channel } from "./channel/channel.ts";
import { runPhases } from "./phases/run.ts";
import { claimEnd } from "./supervise/end.ts";
import { type Checkpoint, openCheckpoint } from "./team/checkpoint.ts";
import { createControls } from "./team/controls.ts";
import { assembleCrew, type CrewParts } from "./team/crew.ts";
import { followProgress } from "./team/progress.ts";

/** The host, as a run sees it. */
export type RunChannel = Omit<Channel, "signal" | typeof Symbol.asyncDispose>;

export interface RunOptions {
  readonly channel: RunChannel;
  /** The run's own files. They are part of a snapshot, and a restarted runner continues from them. */
  readonly directory: string;
  readonly gateway: GatewayAddress;
  /** For git and the project's own commands. */
  readonly environment: Readonly<Record<string, string>>;
  driver(agent: string): Driver;
  /** The command line of an MCP server that forwards calls to a socket. */
  mcpCommand(socketPath: string): readonly string[];
  /** Cancels the run. */
  readonly signal: AbortSignal;
}

/** Takes a run from its task to its end, or continues where an earlier runner stopped. */
export async function run(options: RunOptions): Promise<void> {
  const { channel, directory } = options;
  const { run, task } = await channel.hello();
  const checkpoint = await openCheckpoint(join(directory, "checkpoint"));
  if (checkpoint.found !== undefined) await channel.emit({ type: "resumed", step: checkpoint.found.step });
  await channel.emit({ type: "ended", end: await work(run, task, checkpoint, options) });
  await channel.flush();
}

/** Runs the task and follows the host's messages. A failure beside the agents also ends the run. */
async function work(run: RunId, task: RunTask, checkpoint: Checkpoint, options: RunOptions): Promise<ClaimedEnd> {
  const { channel } = options;
  const failed = new AbortController();
  const fail = (error: unknown) => failed.abort(error);
  const emit = (event: RunnerEvent) => channel.emit(event).catch(fail);
  const progress = followProgress({
    run,
    task,
    checkpoint,
    onTask: (changed) => void emit({ type: "task", task: changed }),
    onNote: ({ agent, text }) => void emit({ type: "note", agent, text }),
    onFailure: fail,
  });
  const over = new AbortController();
  const controls = createControls(progress);
  // A task run's checkpoint knows what it has heard, so it misses no message from before a kill.
  const after = task.order === undefined ? undefined : progress.heard;
  const following = controls.follow(channel.controls(over.signal, after)).catch(fail);
  const signal = AbortSignal.any([options.signal, controls.cancelled, failed.signal]);
  const parts = { ...options, host: channel, task, checkpoint, progress, controls, emit, signal };
  try {
    const end = task.order === undefined ? await runPrompt(parts) : await runPhases({ ...parts, order: task.order });
    failed.signal.throwIfAborted();
    return end;
  } catch (error) {
    return failureOf(failed.signal.aborted ? failed.signal.reason : error);
  } finally {
    over.abort();
    await following;
  }
}

async function runPrompt(parts: CrewParts): Promise<ClaimedEnd> {
  const crew = await assembleCrew(parts);
  return await crew.work(parts.progress.stage);
}

function failureOf(error: unknown): ClaimedEnd {
  return claimEnd("internal", error instanceof SlipwayError ? `${error.code}: ${error.message}` : String(error));
}
