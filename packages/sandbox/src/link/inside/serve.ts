import { constants, type ServerHttp2Session, type ServerHttp2Stream } from "node:http2";
import { connect } from "node:net";
import { text } from "node:stream/consumers";
import { execIdSchema } from "@slipway/contract";
import { drained } from "../../agent/connection.ts";
import type { ExecLogs } from "../../agent/exec/logs.ts";
import { splice } from "../../relay/splice.ts";
import { asSocket } from "../session.ts";

export interface Served {
  readonly agentSocket: string;
  readonly logs: ExecLogs;
  /** Path of the channel's socket. */
  readonly channel: string;
  /** Moves the end of everything to this long from now. */
  keepFor(ms: number): void;
}

/** Answers what a host with the key asks. */
export function serveControl(session: ServerHttp2Session, served: Served): void {
  session.on("stream", (incoming, headers) => {
    const stream = asSocket(incoming);
    const path = String(headers[":path"]);
    answer(stream, `${headers[":method"]} ${path}`, served).catch(() => stream.destroy());
  });
}

async function answer(stream: ServerHttp2Stream, asked: string, served: Served): Promise<void> {
  if (asked === "POST /agent") return pipeToAgent(stream, served.agentSocket);
  if (asked === "GET /status") return say(stream, { channel: served.channel });
  if (asked === "PUT /remaining") return await takeDeadline(stream, served);
  if (asked === "GET /logs") return say(stream, await served.logs.list(async () => true));
  const [, id, , at] = /^GET \/logs\/(\w+)(\/frames\/(\d{1,15}))?$/.exec(asked) ?? [];
  const exec = execIdSchema.safeParse(id);
  if (!exec.success) return refuse(stream, constants.HTTP_STATUS_NOT_FOUND);
  if (at === undefined) return say(stream, await served.logs.find(exec.data, true));
  const log = await served.logs.open(exec.data, Number(at));
  if (log === null) return refuse(stream, constants.HTTP_STATUS_NOT_FOUND);
  const released = new AbortController();
  stream.once("close", () => released.abort());
  stream.respond({ ":status": constants.HTTP_STATUS_OK });
  stream.resume();
  try {
    while (!stream.destroyed) {
      const frames = await log.read();
      if (frames.length === 0) await log.grown(released.signal);
      else if (!stream.write(frames)) await drained(stream);
    }
  } finally {
    await log.close();
  }
}

function pipeToAgent(stream: ServerHttp2Stream, path: string): void {
  stream.respond({ ":status": constants.HTTP_STATUS_OK });
  splice(stream, connect({ path, allowHalfOpen: true }));
}

async function takeDeadline(stream: ServerHttp2Stream, { keepFor }: Served): Promise<void> {
  const asked = await text(stream);
  if (!/^\d{1,15}$/.test(asked)) return refuse(stream, constants.HTTP_STATUS_BAD_REQUEST);
  keepFor(Number(asked));
  say(stream, {});
}

function say(stream: ServerHttp2Stream, value: unknown): void {
  if (stream.destroyed) return;
  stream.respond({ ":status": constants.HTTP_STATUS_OK });
  stream.resume().end(JSON.stringify(value));
}

function refuse(stream: ServerHttp2Stream, status: number): void {
  if (stream.destroyed) return;
  stream.respond({ ":status": status });
  stream.resume().end();
}
