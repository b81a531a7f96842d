import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { type AgentEvent, type ControlMessage, type RunnerEvent, type RunTask, SlipwayError } from "@slipway/contract";
import type { Driver, GatewayAddress, TeamTools } from "./agents/driver.ts";
import { shortText } from "./agents/program/sizes.ts";
import { openChanges } from "./changes.ts";
import { type Checkpoint, openCheckpoint } from "./checkpoint.ts";
import { type Controls, createControls } from "./controls.ts";
import { openMember, type Surroundings } from "./member.ts";
import { followProgress, type RunProgress } from "./progress.ts";
import type { FinalEvent } from "./supervise.ts";
import { runTeam } from "./team/flow.ts";
import { instructionsFor } from "./team/prompts.ts";
import { serveTeam } from "./team/socket.ts";
import { teamTools } from "./team/tools.ts";

/** The host, as far as a run is concerned. */
export interface RunChannel {
  hello(): Promise<{ readonly task: RunTask }>;
  /** Answers when the event can no longer be lost. */
  emit(event: RunnerEvent): Promise<void>;
  /** Answers when the host has everything. */
  flush(): Promise<void>;
  /** How often the host was found away. */
  absences(): number;
  /** Answers when it is there. */
  reach(): Promise<void>;
  controls(signal: AbortSignal): AsyncIterable<ControlMessage>;
}

export interface RunOptions {
  readonly channel: RunChannel;
  /** The run's own files. A snapshot of the sandbox has them, and a restarted runner goes on from them. */
  readonly directory: string;
  readonly gateway: GatewayAddress;
  /** For git. */
  readonly environment: Readonly<Record<string, string>>;
  driver(agent: string): Driver;
  /** The command line of an MCP server that passes calls on to a socket. */
  mcpCommand(socketPath: string): readonly string[];
  /** Cancels the run. */
  readonly signal: AbortSignal;
}

/** Takes a run from its task to its end, or on from where a runner before this one was ended. */
export async function run(options: RunOptions): Promise<void> {
  const { channel, directory } = options;
  const { task } = await channel.hello();
  const checkpoint = await openCheckpoint(join(directory, "checkpoint"));
  if (checkpoint.found !== undefined) await channel.emit({ type: "resumed", step: checkpoint.found.step });
  const final = await work(task, checkpoint, options);
  await channel.emit(endOf(final));
  await channel.flush();
}

/** The run with what the host says to it. What fails beside the agents is the run's end, too. */
async function work(task: RunTask, checkpoint: Checkpoint, options: RunOptions): Promise<FinalEvent> {
  const { channel } = options;
  const failed = new AbortController();
  const fail = (error: unknown) => failed.abort(error);
  const emit = (event: RunnerEvent) => channel.emit(event).catch(fail);
  const progress = followProgress({
    task,
    checkpoint,
    onTask: (changed) => void emit({ type: "task", task: changed }),
    onNote: ({ agent, text }) => void emit({ type: "note", agent, text }),
    onFailure: fail,
  });
  const over = new AbortController();
  const controls = createControls();
  const following = controls.follow(channel.controls(over.signal), progress.mailbox).catch(fail);
  const signal = AbortSignal.any([options.signal, controls.cancelled, failed.signal]);
  try {
    const final = await runAgents({ ...options, signal }, { task, checkpoint, progress, controls, emit });
    failed.signal.throwIfAborted();
    return final;
  } catch (error) {
    return failureOf(error);
  } finally {
    over.abort();
    await following;
  }
}

interface Parts {
  readonly task: RunTask;
  readonly checkpoint: Checkpoint;
  readonly progress: RunProgress;
  readonly controls: Controls;
  emit(event: RunnerEvent): Promise<void>;
}

async function runAgents(options: RunOptions, parts: Parts): Promise<FinalEvent> {
  const { task, progress, controls } = parts;
  const surroundings = await surround(options, parts);
  const employ = async (name: string, turn: string, prompt: string): Promise<FinalEvent> => {
    // Whose turn it is must be known before anything is done in it.
    await progress.save();
    await using tools = await offerTools(name, options, parts);
    const instructions = instructionsFor(name, task.workers, [task.context, ...progress.mailbox.context]);
    const isFresh = name !== "lead";
    await using member = await openMember(surroundings, { name, instructions, tools, turn, isFresh });
    using _joined = controls.join(member);
    return await member.work(prompt);
  };
  return await runTeam(
    {
      board: progress.board,
      workers: task.workers,
      signal: options.signal,
      onStage: progress.enter,
      lead: (turn, prompt) => employ("lead", turn, prompt),
      worker: employ,
    },
    progress.stage,
  );
}

async function surround(options: RunOptions, { task, checkpoint, progress, emit }: Parts): Promise<Surroundings> {
  const { channel, directory, environment, gateway, signal } = options;
  await mkdir(task.workdir, { recursive: true });
  const changes = await openChanges({ directory: join(directory, "changes.git"), workdir: task.workdir, environment });
  return {
    ...{ task, gateway, checkpoint, changes, signal },
    driver: options.driver(task.agent),
    host: channel,
    mailbox: progress.mailbox,
    remainingMs: progress.remainingMs,
    async emit(agent: string, event: AgentEvent) {
      if (event.type === "tool" && event.phase === "end") progress.countStep();
      await emit({ type: "agent", agent, event });
    },
  };
}

/** An agent that works alone has no team to talk to. */
async function offerTools(
  agent: string,
  { directory, mcpCommand }: RunOptions,
  { task, progress }: Parts,
): Promise<TeamTools & AsyncDisposable> {
  if (task.workers === 0) return { definitions: [], command: [], [Symbol.asyncDispose]: async () => {} };
  const definitions = teamTools(progress.board, agent).map((tool) => ({
    ...tool,
    async run(input: unknown) {
      const text = await tool.run(input);
      await progress.save();
      return text;
    },
  }));
  const socketPath = join(directory, `team-${agent}.sock`);
  const served = await serveTeam(socketPath, definitions);
  return { definitions, command: mcpCommand(socketPath), [Symbol.asyncDispose]: () => served[Symbol.asyncDispose]() };
}

function failureOf(error: unknown): FinalEvent {
  const message = error instanceof SlipwayError ? `${error.code}: ${error.message}` : String(error);
  return { type: "error", kind: "internal", message: shortText(message) };
}

function endOf(final: FinalEvent): RunnerEvent {
  if (final.type === "error") return { type: "ended", reason: final.kind, message: shortText(final.message) };
  return { type: "ended", reason: final.outcome, message: shortText(final.text) };
}
