import type { AgentEvent, ClaimedEnd } from "@slipway/contract";
import type { Agent, OpenOptions } from "../driver.ts";
import { type Program, stopGraceMs } from "../program/process.ts";
import type { SessionState } from "../program/session.ts";
import { type Conversation, converse } from "./conversation.ts";
import { failureOf } from "./failure.ts";
import { createPermissions } from "./permissions.ts";
import { createTranslation } from "./translate.ts";

/** An agent's running program, and the conversation with it. */
export interface Live {
  /** One turn at a time. Never fails: a failure is how the turn ends. */
  run(prompt: string, push: (event: AgentEvent) => void): Promise<ClaimedEnd>;
  answer: Agent["answer"];
  /** Asks the agent to end its turn, and kills the program after the grace. */
  cancel(): void;
  /** Resolves when nothing of it is left. */
  stop(): Promise<void>;
  readonly stopped: boolean;
}

export function createLive(program: Program, options: OpenOptions, session: SessionState): Live {
  let push: (event: AgentEvent) => void = () => {};
  let translation = createTranslation();
  let conversation: Conversation | undefined;
  let force: NodeJS.Timeout | undefined;
  let stopped = false;
  const permissions = createPermissions(options.permissions, (event) => push(event));

  void program.exit.then(() => {
    stopped = true;
    // Its children would keep its output open, and a turn waiting for more.
    program.kill();
  });

  const connect = async (): Promise<Conversation> => {
    const connected = await converse(program, options, session.id, {
      update(update) {
        for (const event of translation.read(update)) push(event);
      },
      permission: permissions.ask,
    });
    await session.keep(connected.session);
    push(connected.announcement);
    return connected;
  };
  return {
    async run(prompt, emit) {
      push = emit;
      translation = createTranslation();
      try {
        conversation ??= await connect();
        return translation.end(await conversation.prompt(prompt));
      } catch (error) {
        return await failureOf(error, program, translation.begun);
      }
    },
    answer: permissions.answer,
    cancel() {
      permissions.cancel();
      void conversation?.cancel().catch(() => {});
      force = setTimeout(program.kill, conversation === undefined ? 0 : stopGraceMs);
    },
    async stop() {
      stopped = true;
      clearTimeout(force);
      permissions.cancel();
      await program.stop();
    },
    get stopped() {
      return stopped;
    },
  };
}
