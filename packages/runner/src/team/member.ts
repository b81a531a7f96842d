import { once } from "node:events";
import type { AgentEvent, ClaimedEnd, RunTask } from "@slipway/contract";
import type { Agent, Driver, GatewayAddress, TeamTools } from "../agents/driver.ts";
import type { Channel } from "../channel/channel.ts";
import { claimEnd } from "../supervise/end.ts";
import { supervise } from "../supervise/supervise.ts";
import type { Changes } from "../system/changes.ts";
import { goOnPrompt } from "../system/text.ts";
import type { Checkpoint } from "./checkpoint.ts";
import type { Mailbox } from "./mailbox.ts";

/** What all agents of a run have in common. */
export interface Surroundings {
  readonly task: RunTask;
  readonly driver: Driver;
  readonly gateway: GatewayAddress;
  readonly checkpoint: Pick<Checkpoint, "agent" | "saveAgent">;
  readonly mailbox: Mailbox;
  readonly changes: Changes;
  /** Ends the run. */
  readonly signal: AbortSignal;
  /** What is left of the run's time. */
  remainingMs(): number;
  readonly host: Host;
  emit(agent: string, event: AgentEvent): Promise<void>;
}

/** The way to the models: a turn that breaks because the host was away continues when it is back. */
export type Host = Pick<Channel, "absences" | "reach">;

export interface MemberOptions {
  readonly name: string;
  readonly instructions: string;
  readonly tools: TeamTools;
  /** Identifies the work, also after a restart. */
  readonly turn: string;
  /** Starts without the agent's memory of other turns. */
  readonly isFresh: boolean;
  readonly model: string;
}

/** One agent of a run, with the user's words to it. */
export interface Member extends AsyncDisposable {
  readonly name: string;
  /** Works on a prompt to its end, through interrupts and further words of the user. */
  work(prompt: string): Promise<ClaimedEnd>;
  say(text: string, options: { readonly wakes: boolean }): void;
  interrupt(): void;
  answer(permission: Parameters<Agent["answer"]>[0]): void;
}

export async function openMember(surroundings: Surroundings, options: MemberOptions): Promise<Member> {
  const { task, checkpoint, mailbox, signal } = surroundings;
  const { name, turn, isFresh } = options;
  const found = await checkpoint.agent(name);
  const wasAtIt = found?.turn === turn;
  const agent = await surroundings.driver.open({
    agent: name,
    workdir: task.workdir,
    model: options.model,
    permissions: task.permissions,
    limits: task.limits,
    instructions: options.instructions,
    gateway: surroundings.gateway,
    tools: options.tools,
    signal,
    state: wasAtIt || !isFresh ? found?.state : undefined,
    save: (state) => checkpoint.saveAgent(name, { turn, state }),
  });
  const questions = new Set<string>();
  let interrupted = new AbortController();

  const takeTurn = async (words: readonly string[]): Promise<ClaimedEnd> => {
    interrupted = new AbortController();
    questions.clear();
    const events = supervise((turnSignal) => agent.turn(words.join("\n\n"), { signal: turnSignal }), {
      limits: { ...task.limits, totalMs: surroundings.remainingMs() },
      signal: AbortSignal.any([signal, interrupted.signal]),
      waitsForUser: () => questions.size > 0,
    });
    return await report(surroundings, name, events, questions);
  };

  return {
    name,
    async work(prompt) {
      let next = wasAtIt ? goOnPrompt : prompt;
      for (;;) {
        if (mailbox.isInterrupted) {
          const over = await waitForUser(surroundings, name);
          if (over !== undefined) return over;
        }
        const letters = mailbox.take(name);
        const absences = surroundings.host.absences();
        const end = await takeTurn(next === goOnPrompt && letters.length > 0 ? letters : [next, ...letters]);
        const isCutShort = interrupted.signal.aborted || (await hostWasAway(surroundings, end, absences));
        if (!isCutShort) await surroundings.emit(name, { type: "ended", end });
        const goesOn = isCutShort || (end.reason === "completed" && mailbox.isWanted(name));
        if (signal.aborted || !goesOn) return end;
        next = goOnPrompt;
      }
    },
    say(text, { wakes }) {
      if (interrupted.signal.aborted || !agent.steer(text)) mailbox.put(name, text, { wakes });
    },
    interrupt: () => interrupted.abort(),
    answer(permission) {
      if (questions.delete(permission.id)) agent.answer(permission);
    },
    [Symbol.asyncDispose]: () => agent[Symbol.asyncDispose](),
  };
}

/** Whether a turn broke because the host was away. Waits until the host is back or the run's time is over. */
async function hostWasAway(
  { host, signal, remainingMs }: Surroundings,
  { reason }: ClaimedEnd,
  absences: number,
): Promise<boolean> {
  if (!["network", "overloaded", "truncated"].includes(reason)) return false;
  const over = AbortSignal.any([signal, AbortSignal.timeout(remainingMs())]);
  if (!over.aborted) await Promise.race([host.reach(), once(over, "abort")]);
  return !over.aborted && host.absences() > absences;
}

/** Emits a turn's events, except its end, and looks at the files after each call. */
async function report(
  { emit, changes }: Surroundings,
  name: string,
  events: AsyncIterable<AgentEvent>,
  questions: Set<string>,
): Promise<ClaimedEnd> {
  const look = () =>
    changes.look(async (found) => {
      for (const change of found) await emit(name, change);
    });
  let end = claimEnd("internal", "the turn had no end");
  let looking: Promise<void> | undefined;
  for await (const event of events) {
    if (event.type === "permission") questions.add(event.id);
    if (event.type === "ended") end = event.end;
    else await emit(name, event);
    if (event.type === "tool" && event.phase === "end") looking = look();
  }
  await looking;
  await look();
  return end;
}

/** Returns how the run ended while waiting, if it did. */
async function waitForUser(
  { mailbox, emit, signal, remainingMs }: Surroundings,
  name: string,
): Promise<ClaimedEnd | undefined> {
  await emit(name, { type: "status", status: "interrupted" });
  const limit = AbortSignal.timeout(remainingMs());
  await mailbox.wanted(name, AbortSignal.any([signal, limit]));
  if (mailbox.isWanted(name)) return undefined;
  const end = signal.aborted
    ? claimEnd("cancelled")
    : claimEnd("timeout", "no word from the user within the run's time");
  await emit(name, { type: "ended", end });
  return end;
}
