import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { SlipwayError } from "@slipway/contract";
import type { Layout } from "../../layout.ts";
import type { Clock } from "../clock.ts";
import type { Use } from "../decide.ts";
import type { Box } from "./boxes.ts";

/** The operations that pid 1 answers by itself, without a handler (native/PROTOCOL.md). */
export interface AgentLink {
  /** A connection that stays open as long as the sandbox lives. */
  park(box: Box): Promise<Socket>;
  use(box: Box): Promise<Use>;
  /** Stops or continues every process but pid 1. */
  setStopped(box: Box, stopped: boolean): Promise<void>;
  /** Whether the time of commands goes on. */
  setClock(box: Box, goesOn: boolean): Promise<void>;
}

type Question = "Q" | "Z" | "Y" | "S" | "G";

const answerLimitMs = 30_000;
const headerBytes = 5;

export function createAgentLink(layout: Layout, clock: Clock): AgentLink {
  const send = async (box: Box, operation: "W" | Question): Promise<Socket> => {
    const socket = connect(layout.box(box.id).agentSocket);
    await once(socket, "connect");
    socket.on("error", () => socket.destroy());
    socket.write(Buffer.from([1, 0, 0, 0, operation.charCodeAt(0)]));
    return socket;
  };
  const ask = async (box: Box, operation: Question): Promise<Buffer> => {
    const socket = await send(box, operation);
    const forgetLimit = clock.after(answerLimitMs, () => socket.destroy());
    try {
      return await answerOf(socket);
    } finally {
      forgetLimit();
      socket.destroy();
    }
  };
  return {
    async park(box) {
      const socket = await send(box, "W");
      socket.resume();
      socket.unref();
      return socket;
    },
    async use(box) {
      const answer = await ask(box, "Q");
      return { operations: answer.readUInt32LE(0), sinceMs: Number(answer.readBigUInt64LE(4)) };
    },
    async setStopped(box, stopped) {
      await ask(box, stopped ? "Z" : "Y");
    },
    async setClock(box, goesOn) {
      await ask(box, goesOn ? "G" : "S");
    },
  };
}

/** The payload of the one `K` frame that answers. */
async function answerOf(socket: Socket): Promise<Buffer> {
  let received = Buffer.alloc(0);
  for await (const chunk of socket) {
    received = Buffer.concat([received, chunk as Buffer]);
    if (received.length < headerBytes) continue;
    const end = headerBytes + received.readUInt32LE(1);
    if (received.length >= end && received[0] === "K".charCodeAt(0)) return received.subarray(headerBytes, end);
    if (received.length >= end) break;
  }
  throw new SlipwayError("provider_unavailable", "the sandbox's agent does not answer");
}
