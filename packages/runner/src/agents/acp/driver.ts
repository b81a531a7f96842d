import type { ClaimedEnd } from "@slipway/contract";
import { z } from "zod";
import { claimEnd } from "../../supervise/end.ts";
import type { Agent, Driver, OpenOptions } from "../driver.ts";
import { eventsOf } from "../program/events.ts";
import { findProgram, type Surroundings } from "../program/find.ts";
import { environmentIn, homeOf, makeHome } from "../program/home.ts";
import { type Program, startProgram } from "../program/process.ts";
import { sessionState } from "../program/session.ts";
import type { AcpAgent } from "./agent.ts";
import { createLive, type Live } from "./live.ts";

const sessionId = z.string().min(1).max(256);

/**
 * Drives an agent by the Agent Client Protocol. Its program stays while turns end well. After any other end, it is
 * killed with everything it started, and the next turn resumes the conversation in a new one.
 */
export function createAcpDriver(agent: AcpAgent, surroundings: Surroundings): Driver {
  return {
    name: `acp:${agent.name}`,
    async open(options) {
      const file = await findProgram(agent.program, surroundings);
      const home = homeOf(surroundings, options.agent);
      const { argv, env, files, preface = "" } = agent.launch(options, { file, home });
      await makeHome(surroundings, options.agent, files);
      const own = { ...environmentIn(surroundings, home), ...env };
      return createAgent(options, preface, () => startProgram({ argv, cwd: options.workdir, env: own }));
    },
  };
}

function createAgent(options: OpenOptions, preface: string, start: () => Promise<Program>): Agent {
  const session = sessionState(options, sessionId);
  let live: Live | undefined;
  return {
    async *turn(prompt, { signal }) {
      if (signal.aborted) return yield { type: "ended", end: claimEnd("cancelled") };
      yield { type: "status", status: "starting" };
      const isFirst = session.id === undefined && preface !== "";
      const words = isFirst ? `${preface}\n\n${prompt}` : prompt;
      if (live === undefined || live.stopped) live = createLive(await start(), options, session);
      const current = live;
      const cancel = () => current.cancel();
      signal.addEventListener("abort", cancel);
      if (signal.aborted) cancel();
      let end: ClaimedEnd | undefined;
      try {
        end = yield* eventsOf((push) => current.run(words, push));
        if (signal.aborted) end = claimEnd("cancelled");
      } finally {
        signal.removeEventListener("abort", cancel);
        if (end?.reason !== "completed") await current.stop();
      }
      // A lost conversation stays lost: the next turn starts another one.
      if (end.reason === "session_lost") await session.keep(undefined);
      yield { type: "ended", end };
    },
    // The protocol has no message for it.
    steer: () => false,
    answer: (permission) => live?.answer(permission),
    [Symbol.asyncDispose]: async () => live?.stop(),
  };
}
