import { type ClientHttp2Stream, constants } from "node:http2";
import { text } from "node:stream/consumers";
import { SlipwayError } from "@slipway/contract";
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

/** The whole answer to a question. Fails with `provider_unavailable` when the connection ends before. */
export async function answerOf(ask: Ask, path: string, options: AskOptions): Promise<string> {
  const { status, stream } = await responseTo(ask, path, options);
  using _ = { [Symbol.dispose]: () => void stream.destroy() };
  const body = await text(stream).catch((cause: unknown) => {
    throw lost(path, options.signal, cause);
  });
  if (status === constants.HTTP_STATUS_OK) return body;
  throw new SlipwayError("internal", `The sandbox's link answered ${status} to ${path}: ${body.slice(0, 200)}`);
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
  stream.once("response", (headers) => resolve(Number(headers[":status"])));
  stream.once("close", () => reject(lost(path, options.signal)));
  options.signal?.addEventListener("abort", cut, { once: true });
  try {
    return { status: await promise, stream };
  } finally {
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
