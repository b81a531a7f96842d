import { once } from "node:events";
import { createServer, type IncomingHttpHeaders, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import type { Usage } from "@slipway/contract";
import type { ModelEvent, ModelRequest, StopReason } from "../dialects/conversation.ts";
import type { Dialect } from "../dialects/dialect.ts";
import { dialects } from "../dialects/index.ts";

/** What an endpoint got. */
export interface SeenRequest {
  readonly url: string;
  readonly headers: IncomingHttpHeaders;
  readonly body: Record<string, unknown>;
  readonly dialect: Dialect;
}

/** What it does with one request. Without an end of its own the response stays open. */
export type Behaviour = (response: ServerResponse, request: SeenRequest) => void | Promise<void>;

/** An endpoint that does what a test says, request by request; the last behaviour is repeated. */
export interface TestUpstream extends AsyncDisposable {
  /** With `/v1`. */
  readonly baseUrl: string;
  readonly seen: readonly SeenRequest[];
  /** Connections that were closed by the other side while a response was under way. */
  readonly abandoned: number;
  /** Replaces what is left to do. */
  behave(...behaviours: readonly [Behaviour, ...Behaviour[]]): void;
  /** The next response that the other side gives up on. */
  nextAbandoned(): Promise<void>;
}

export async function startTestUpstream(): Promise<TestUpstream> {
  const seen: SeenRequest[] = [];
  let left: readonly Behaviour[] = [speak()];
  let abandoned = 0;
  let onAbandoned = Promise.withResolvers<void>();
  const server = createServer(async (request, response) => {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    const url = request.url ?? "";
    const dialect = Object.values(dialects).find(({ path }) => url.endsWith(path)) ?? dialects.anthropic;
    const got = { url, headers: request.headers, body: JSON.parse(Buffer.concat(chunks).toString("utf8")), dialect };
    seen.push(got);
    response.once("close", () => {
      if (response.writableFinished || response.errored !== null || ended.has(response)) return;
      abandoned++;
      onAbandoned.resolve();
      onAbandoned = Promise.withResolvers<void>();
    });
    const [behaviour, ...rest] = left;
    if (rest.length > 0) left = rest;
    await behaviour?.(response, got);
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return {
    baseUrl: `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`,
    seen,
    get abandoned() {
      return abandoned;
    },
    behave(...behaviours) {
      left = behaviours;
    },
    nextAbandoned: () => onAbandoned.promise,
    async [Symbol.asyncDispose]() {
      server.close();
      server.closeAllConnections();
      await once(server, "close");
    },
  };
}

/** Responses that the endpoint itself has broken. */
const ended = new WeakSet<ServerResponse>();

export const testUsage: Usage = { input: 100, output: 20, cacheRead: 30, cacheWrite: 40 };

export interface Speech {
  readonly texts?: readonly string[];
  readonly usage?: Usage;
  readonly stop?: StopReason;
  /** Waited for before each text, with the number of texts that were sent. */
  readonly gate?: (sent: number) => Promise<unknown>;
}

/** A good answer, streamed or whole, in the dialect of the request. */
export function speak({ texts = ["Hello", " world"], usage = testUsage, stop = "end", gate }: Speech = {}): Behaviour {
  return async (response, { dialect, body }) => {
    const asked = requestOf(body);
    const events: ModelEvent[] = [
      { type: "start", id: "msg_1", model: "some-model" },
      ...texts.map((text) => ({ type: "text", text }) as const),
      { type: "usage", usage },
      { type: "stop", reason: stop },
    ];
    if (body["stream"] !== true) return writeJson(response, 200, dialect.writeResponse(asked, events));
    const writer = dialect.streamWriter(asked);
    startStream(response);
    let sent = 0;
    for (const event of events) {
      if (event.type === "text") await gate?.(sent++);
      response.write(writer.write(event));
    }
    response.end();
  };
}

/** Begins to stream a text, then does something else. */
export function speakThen(next: (response: ServerResponse) => void, text = "Hello"): Behaviour {
  return (response, { dialect, body }) => {
    const writer = dialect.streamWriter(requestOf(body));
    startStream(response);
    const begun = writer.write({ type: "start", id: "msg_1", model: "some-model" });
    response.write(begun + writer.write({ type: "text", text }), () => next(response));
  };
}

export function refuse(status: number, headers: Record<string, string> = {}, message = "no"): Behaviour {
  return (response, { dialect }) => {
    const type = dialect.name === "anthropic" ? { type: "error" } : {};
    writeJson(response, status, { ...type, error: { type: "some_error", message } }, headers);
  };
}

export const hang: Behaviour = () => {};

export const hangAfterHeaders: Behaviour = (response) => {
  startStream(response);
  response.flushHeaders();
};

export const reset: Behaviour = (response) => breakConnection(response);

export const invalidJson: Behaviour = (response, { body }) => {
  if (body["stream"] === true) {
    startStream(response);
    response.end("data: {nonsense\n\n");
  } else {
    response.writeHead(200, { "content-type": "application/json" }).end("{nonsense");
  }
};

/** As a crash of the endpoint does it. */
export function breakConnection(response: ServerResponse): void {
  ended.add(response);
  response.socket?.resetAndDestroy();
}

function startStream(response: ServerResponse): void {
  response.writeHead(200, { "content-type": "text/event-stream" });
}

function writeJson(response: ServerResponse, status: number, body: object, headers: Record<string, string> = {}): void {
  response.writeHead(status, { "content-type": "application/json", ...headers }).end(JSON.stringify(body));
}

function requestOf(body: Record<string, unknown>): ModelRequest {
  return {
    model: String(body["model"]),
    system: "",
    messages: [],
    tools: [],
    toolChoice: "auto",
    maxOutputTokens: undefined,
    temperature: undefined,
    stopSequences: [],
    stream: body["stream"] === true,
    answerSchema: undefined,
  };
}
