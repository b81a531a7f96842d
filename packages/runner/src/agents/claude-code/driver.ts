import { type AgentEvent, type ClaimedEnd, hasCode } from "@slipway/contract";
import { z } from "zod";
import { claimEnd } from "../../supervise/end.ts";
import type { Agent, Driver, OpenOptions } from "../driver.ts";
import { findProgram, type Surroundings } from "../program/find.ts";
import { environmentIn, makeHome } from "../program/home.ts";
import { crashOf, type Program, startProgram, stopGraceMs } from "../program/process.ts";
import { sessionState } from "../program/session.ts";
import { claudeArguments, claudeCode, claudeEnvironment, instructionsFile } from "./command.ts";
import { type Talk, talkTo } from "./talk.ts";
import { createTranslation } from "./translate.ts";

/** It becomes a program argument: allow nothing but an id. */
const sessionId = z.uuid();

/**
 * Drives Claude Code by its native stream, one process per turn: a crash costs one turn at most, and a restart resumes
 * a conversation like every other turn.
 */
export function createClaudeCodeDriver(surroundings: Surroundings): Driver {
  return {
    name: "claude-code",
    async open(options) {
      const file = await findProgram(claudeCode, surroundings);
      const home = await makeHome(surroundings, options.agent, { [instructionsFile]: options.instructions });
      const env = { ...environmentIn(surroundings, home), ...claudeEnvironment(options) };
      return createAgent(options, (session) =>
        startProgram({ argv: [file, ...claudeArguments(options, home, session)], cwd: options.workdir, env }),
      );
    },
  };
}

interface Running {
  readonly program: Program;
  readonly talk: Talk;
}

function createAgent(options: OpenOptions, start: (session: string | undefined) => Promise<Program>): Agent {
  const session = sessionState(options, sessionId);
  let running: Running | undefined;
  return {
    async *turn(prompt, { signal }) {
      if (signal.aborted) return yield { type: "ended", end: claimEnd("cancelled") };
      yield { type: "status", status: "starting" };
      const program = await start(session.id);
      running = { program, talk: talkTo(program) };
      try {
        for await (const event of runTurn(prompt, signal, running)) {
          if (event.type === "session") await session.keep(event.session);
          // A lost conversation stays lost: the next turn starts another one.
          if (event.type === "ended" && event.end.reason === "session_lost") await session.keep(undefined);
          yield event;
        }
      } finally {
        running = undefined;
      }
    },
    steer: (text) => running?.talk.say(text) ?? false,
    answer: (permission) => running?.talk.answer(permission),
    [Symbol.asyncDispose]: async () => running?.program.stop(),
  };
}

/** Runs one turn of a program that has just started. Afterwards nothing of the program is left. */
async function* runTurn(prompt: string, signal: AbortSignal, { program, talk }: Running): AsyncGenerator<AgentEvent> {
  const translation = createTranslation();
  let force: NodeJS.Timeout | undefined;
  const interrupt = () => {
    talk.interrupt();
    force = setTimeout(program.kill, stopGraceMs);
  };
  let failure: ClaimedEnd | undefined;
  signal.addEventListener("abort", interrupt);
  try {
    talk.say(prompt);
    if (signal.aborted) interrupt();
    for await (const message of talk.messages()) {
      yield* translation.read(message);
      if (translation.end !== undefined) talk.finish();
    }
  } catch (error) {
    failure = unusable(error);
  } finally {
    signal.removeEventListener("abort", interrupt);
    await program.stop();
    clearTimeout(force);
  }
  const end = signal.aborted ? claimEnd("cancelled") : (failure ?? translation.end ?? (await crashOf(program)));
  yield { type: "ended", end };
}

/** Failures caused by the program's output. Everything else is a defect. */
function unusable(error: unknown): ClaimedEnd {
  if (hasCode(error, "invalid_answer") || hasCode(error, "too_large")) return claimEnd("protocol", error.message);
  if (hasCode(error, "component_missing")) return claimEnd("internal", error.message);
  throw error;
}
