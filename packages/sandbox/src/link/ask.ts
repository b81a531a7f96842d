import { type ClientHttp2Stream, constants } from "node:http2";
import { text } from "node:stream/consumers";
import { SlipwayError } from "@slipway/contract";
import type { z } from "zod";
import { abortedError } from "../abort.ts";
import type { CallOptions } from "../provider.ts";

/** Opens a stream of the control connection: what is asked is in its path. */
export type Ask = (path: string, options: AskOptions) => Promise<ClientHttp2Stream>;

export interface AskOptions extends CallOptions {
  readonly method?: string;
  readonly body?: string;
  /** How long to wait for a lost link to be back. */
  readonly withinMs?: number | undefined;
}

/** Also for the program inside: whoever made its image decides what it says. */
const answerMs = 60_000;
const mostAnswerBytes = 32 * 1024 * 1024;

/** The whole answer to a question. Fails with `provider_unavailable` when it does not come, or is none. */
export async function answerOf<Answer>(
  ask: Ask,
  path: string,
  schema: z.ZodType<Answer>,
  options: AskOptions,
): Promise<Answer> {
  const { status, stream } = await responseTo(ask, path, options);
  const cut = () => stream.destroy();
  const timer = setTimeout(cut, answerMs);
  options.signal?.addEventListener("abort", cut, { once: true });
  let bytes = 0;
  stream.on("data", (chunk: Buffer) => {
    bytes += chunk.length;
    if (bytes > mostAnswerBytes) cut();
  });
  try {
    const body = await text(stream).catch((cause: unknown) => {
      throw lost(path, options.signal, cause);
    });
    if (status === constants.HTTP_STATUS_OK) return parse(path, schema, body);
    throw new SlipwayError("internal", `The sandbox's link answered ${status} to ${path}: ${body.slice(0, 200)}`);
  } finally {
    clearTimeout(timer);
    options.signal?.removeEventListener("abort", cut);
    cut();
  }
}

function parse<Answer>(path: string, schema: z.ZodType<Answer>, body: string): Answer {
  try {
    return schema.parse(JSON.parse(body));
  } catch (cause) {
    const message = `What the sandbox's link answered to ${path} is no answer: ${JSON.stringify(body.slice(0, 200))}`;
    throw new SlipwayError("provider_unavailable", message, { cause });
  }
}

/** The status of an answer, and the stream with its body. */
export async function responseTo(
  ask: Ask,
  path: string,
  options: AskOptions,
): Promise<{ status: number; stream: ClientHttp2Stream }> {
  const stream = await ask(path, options);
  const { promise, resolve, reject } = Promise.withResolvers<number>();
  const cut = () => stream.destroy();
  const timer = setTimeout(cut, answerMs);
  stream.once("response", (headers) => resolve(Number(headers[":status"])));
  stream.once("close", () => reject(lost(path, options.signal)));
  options.signal?.addEventListener("abort", cut, { once: true });
  try {
    return { status: await promise, stream };
  } finally {
    clearTimeout(timer);
    options.signal?.removeEventListener("abort", cut);
  }
}

function lost(path: string, signal: AbortSignal | undefined, cause?: unknown): SlipwayError {
  if (signal?.aborted) return abortedError(signal);
  return new SlipwayError(
    "provider_unavailable",
    `The connection to the sandbox was lost before ${path} was answered.`,
    {
      cause,
    },
  );
}
