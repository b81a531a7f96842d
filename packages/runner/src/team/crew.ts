import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import type { AgentEvent, ClaimedEnd, RunnerEvent, RunTask } from "@slipway/contract";
import type { Driver, GatewayAddress, TeamTool, TeamTools } from "../agents/driver.ts";
import { openChanges } from "../system/changes.ts";
import type { Checkpoint } from "./checkpoint.ts";
import type { Controls } from "./controls.ts";
import { runTeam, type Stage } from "./flow.ts";
import { type Host, openMember, type Surroundings } from "./member.ts";
import type { RunProgress } from "./progress.ts";
import { instructionsFor } from "./prompts.ts";
import { serveTeam } from "./socket.ts";
import { teamTools } from "./tools.ts";

/** The agents of a run: a lead, and possibly workers. */
export interface Crew {
  /** Works from a stage to its end. */
  work(stage: Stage, options?: CrewWork): Promise<ClaimedEnd>;
  /** Attributes the changes so far to nobody. */
  overlookChanges(): Promise<void>;
}

export interface CrewWork {
  /** Identifies this work within the run, also after a restart. */
  readonly name?: string;
  /** Defaults to the run's model. */
  readonly model?: string | undefined;
  /** Called after the lead's turn. Nobody is at work then, in the files or in git, unlike after a worker's turn. */
  onTurn?(): Promise<void>;
}

export interface CrewParts {
  readonly task: RunTask;
  readonly checkpoint: Checkpoint;
  readonly progress: RunProgress;
  readonly controls: Controls;
  readonly host: Host;
  /** The run's own files. */
  readonly directory: string;
  readonly gateway: GatewayAddress;
  readonly environment: Readonly<Record<string, string>>;
  driver(agent: string): Driver;
  mcpCommand(socketPath: string): readonly string[];
  /** Tools besides the team's. */
  tools?(agent: string): readonly TeamTool[];
  emit(event: RunnerEvent): Promise<void>;
  readonly signal: AbortSignal;
}

export async function assembleCrew(parts: CrewParts): Promise<Crew> {
  const { task, progress, controls, signal } = parts;
  const surroundings = await surround(parts);
  const employ = async (name: string, turn: string, prompt: string, work: CrewWork): Promise<ClaimedEnd> => {
    // Save whose turn it is before the turn does anything.
    await progress.save();
    await using tools = await offerTools(name, parts);
    const instructions = instructionsFor(name, task.workers, [task.context, ...progress.mailbox.context]);
    const isFresh = name !== "lead";
    const { model = task.model } = work;
    await using member = await openMember(surroundings, { name, instructions, tools, turn, isFresh, model });
    using _joined = controls.join(member);
    return await member.work(prompt);
  };
  return {
    async work(stage, work = {}) {
      const named = (turn: string) => (work.name === undefined ? turn : `${work.name}/${turn}`);
      return await runTeam(
        {
          board: progress.board,
          workers: task.workers,
          signal,
          onStage: progress.enter,
          async lead(turn, prompt) {
            const end = await employ("lead", named(turn), prompt, work);
            await work.onTurn?.();
            return end;
          },
          worker: (name, turn, prompt) => employ(name, named(turn), prompt, work),
        },
        stage,
      );
    },
    overlookChanges: () => surroundings.changes.look(async () => {}),
  };
}

async function surround(parts: CrewParts): Promise<Surroundings> {
  const { task, checkpoint, progress, host, directory, environment, gateway, emit, signal } = parts;
  await mkdir(task.workdir, { recursive: true });
  const changes = await openChanges({ directory: join(directory, "changes.git"), workdir: task.workdir, environment });
  return {
    task,
    gateway,
    checkpoint,
    changes,
    host,
    signal,
    driver: parts.driver(task.agent),
    mailbox: progress.mailbox,
    remainingMs: progress.remainingMs,
    async emit(agent: string, event: AgentEvent) {
      if (event.type === "tool" && event.phase === "end") progress.countStep();
      await emit({ type: "agent", agent, event });
    },
  };
}

/** An agent that works alone has no team to talk to. */
async function offerTools(agent: string, parts: CrewParts): Promise<TeamTools & AsyncDisposable> {
  const { task, progress, directory, mcpCommand } = parts;
  const offered = [...(task.workers === 0 ? [] : teamTools(progress.board, agent)), ...(parts.tools?.(agent) ?? [])];
  if (offered.length === 0) return { definitions: [], command: [], [Symbol.asyncDispose]: async () => {} };
  const definitions = offered.map((tool) => ({
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
