import { type ClientHttp2Stream, constants } from "node:http2";
import { type ExecId, type ExecInfo, execEndReasons, execIdSchema, hasCode } from "@slipway/contract";
import { z } from "zod";
import { type ExecLog, wholeFrames } from "../agent/exec/log.ts";
import type { ExecLogs } from "../agent/exec/logs.ts";
import { type Ask, answerOf, responseTo } from "./ask.ts";

/** A reader asks again, and in between whether the sandbox is alive. */
const patienceMs = 5000;
const mostReadBytes = 1024 * 1024;

const exitSchema = z.object({
  reason: z.enum(execEndReasons),
  exitCode: z.number().nullable(),
  signal: z.string().nullable(),
  durationMs: z.number(),
  stdoutBytes: z.number(),
  stderrBytes: z.number(),
});
const infoSchema: z.ZodType<ExecInfo> = z.object({
  id: execIdSchema,
  argv: z.array(z.string()),
  startedAt: z.number(),
  background: z.boolean(),
  exit: exitSchema.nullable(),
});

/** The logs of execs that the link program keeps. While it answers, the sandbox is alive. */
export function logsOver(ask: Ask): ExecLogs {
  return {
    async open(id, at = 0) {
      const stream = await openFrames(ask, id, at);
      return stream && readOver(ask, id, at, stream);
    },
    find: (id) => answerOf(ask, `/logs/${id}`, infoSchema.refine((info) => info.id === id).nullable(), {}),
    list: () => answerOf(ask, "/logs", z.array(infoSchema), {}),
  };
}

/** The log's bytes from a position on, as it grows; null when there is no log. */
async function openFrames(ask: Ask, id: ExecId, at: number): Promise<ClientHttp2Stream | null> {
  const { status, stream } = await responseTo(ask, `/logs/${id}/frames/${at}`, { withinMs: patienceMs });
  if (status === constants.HTTP_STATUS_OK) return stream;
  stream.destroy();
  return null;
}

function readOver(ask: Ask, id: ExecId, at: number, first: ClientHttp2Stream): ExecLog {
  let stream = first;
  /** Of what has been read. */
  let position = at;
  let rest: Buffer = Buffer.alloc(0);
  /** Goes on where the reader is. False when the link stays lost for now. */
  const reopen = async (): Promise<boolean> => {
    try {
      const fresh = await openFrames(ask, id, position);
      if (fresh === null) throw Object.assign(new Error(`The log of ${id} is gone.`), { code: "ENOENT" });
      stream = fresh;
      rest = Buffer.alloc(0);
      return true;
    } catch (error) {
      if (hasCode(error, "provider_unavailable")) return false;
      throw error;
    }
  };
  return {
    async read() {
      const taken = takeAvailable(stream, rest);
      const { length } = wholeFrames(taken);
      position += length;
      rest = taken.subarray(length);
      return taken.subarray(0, length);
    },
    async grown(released) {
      if (stream.readableLength > 0) return true;
      if (stream.destroyed || stream.readableEnded) return await reopen();
      return await change(stream, released);
    },
    async close() {
      stream.destroy();
    },
  };
}

function takeAvailable(stream: ClientHttp2Stream, before: Buffer): Buffer {
  const chunks = [before];
  for (let bytes = 0; bytes < mostReadBytes; ) {
    const chunk: Buffer | null = stream.read();
    if (chunk === null) break;
    chunks.push(chunk);
    bytes += chunk.length;
  }
  return Buffer.concat(chunks);
}

/** A silent log of a link that is up is nothing to ask about: this waits until there is more, or the link is lost. */
function change(stream: ClientHttp2Stream, released: AbortSignal): Promise<true> {
  const { promise, resolve } = Promise.withResolvers<true>();
  const done = () => resolve(true);
  stream.once("readable", done).once("close", done);
  released.addEventListener("abort", done, { once: true });
  return promise.finally(() => {
    stream.off("readable", done).off("close", done);
    released.removeEventListener("abort", done);
  });
}
