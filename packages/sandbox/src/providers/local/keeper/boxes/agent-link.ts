import type { Socket } from "node:net";
import { SlipwayError } from "@slipway/contract";
import { dialAgent, expectDone, openCall } from "../../../../agent/connection.ts";
import { decodeUse } from "../../../../agent/use.ts";
import { encodeRequest } from "../../../../agent/wire.ts";
import type { Clock } from "../../../../keeper/clock.ts";
import type { Use } from "../../../../keeper/decide.ts";
import type { Layout } from "../../layout.ts";
import type { Box } from "./boxes.ts";

/** The operations that pid 1 answers itself, without a handler (native/PROTOCOL.md). */
export interface AgentLink {
  /** A connection that stays open as long as the sandbox lives. */
  park(box: Box): Promise<Socket>;
  use(box: Box): Promise<Use>;
  /** Stops or continues every process but pid 1. */
  setStopped(box: Box, stopped: boolean): Promise<void>;
  /** Stops or continues the clock of timeouts. */
  setClock(box: Box, goesOn: boolean): Promise<void>;
}

const answerLimitMs = 30_000;

export function createAgentLink(layout: Layout, clock: Clock): AgentLink {
  const dial = (box: Box) => dialAgent(layout.box(box.id).agentSocket);
  const ask = async (box: Box, operation: "Q" | "Z" | "Y" | "S" | "G"): Promise<Buffer> => {
    const limit = new AbortController();
    const forgetLimit = clock.after(answerLimitMs, () => limit.abort());
    try {
      using call = await openCall(dial(box), operation, {}, limit.signal);
      return await expectDone(call, box.id);
    } catch (cause) {
      throw new SlipwayError("provider_unavailable", `The agent of ${box.id} does not answer.`, { cause });
    } finally {
      forgetLimit();
    }
  };
  return {
    async park(box) {
      const socket = await dial(box)();
      socket.on("error", () => socket.destroy());
      socket.write(encodeRequest("W"));
      return socket.resume().unref();
    },
    async use(box) {
      const answer = await ask(box, "Q");
      return decodeUse(answer);
    },
    async setStopped(box, stopped) {
      await ask(box, stopped ? "Z" : "Y");
    },
    async setClock(box, goesOn) {
      await ask(box, goesOn ? "G" : "S");
    },
  };
}
