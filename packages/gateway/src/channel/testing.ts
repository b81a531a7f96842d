import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { createServer, type IncomingMessage, request as sendRequest } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type NumberedEvent, newId, type RunId, runIdSchema, runTaskSchema } from "@slipway/contract";
import { openRunLog } from "../journal/run-log.ts";
import type { RunLog } from "../ports/ports.ts";
import { createRunChannel, type RunChannel } from "./channel.ts";
import type { Timers } from "./timers.ts";

export const task = runTaskSchema.parse({ agent: "builtin", prompt: "work", model: "scripted/demo" });

/** Time that passes when it is told to. */
export function createFakeTime() {
  let now = 1_000_000;
  const due = new Set<{ readonly at: number; readonly callback: () => void }>();
  const timers: Timers = {
    after(delayMs, callback) {
      const entry = { at: now + delayMs, callback };
      due.add(entry);
      return () => due.delete(entry);
    },
  };
  return {
    clock: { now: () => now },
    timers,
    get waiting() {
      return due.size;
    },
    /** Calls back what is due on the way, in order. */
    advance(ms: number) {
      const end = now + ms;
      for (;;) {
        const [next] = [...due].filter(({ at }) => at <= end).sort((a, b) => a.at - b.at);
        if (next === undefined) break;
        due.delete(next);
        now = Math.max(now, next.at);
        next.callback();
      }
      now = end;
    },
  };
}

export type FakeTime = ReturnType<typeof createFakeTime>;

export interface Answer {
  readonly status: number;
  readonly headers: IncomingMessage["headers"];
  readonly body: unknown;
}

export interface TestHost extends AsyncDisposable {
  readonly time: FakeTime;
  readonly socketPath: string;
  readonly channel: RunChannel;
  readonly log: RunLog;
  readonly failures: unknown[];
  openRun(): Promise<RunId>;
  send(run: RunId, method: string, path: string, body?: unknown): Promise<Answer>;
  sendEvents(run: RunId, events: readonly unknown[]): Promise<Answer>;
  stored(run: RunId): Promise<NumberedEvent[]>;
}

/** A run channel behind a unix socket, where the token of a run is its id. */
export async function startTestHost({ wrapLog = (log: RunLog) => log } = {}): Promise<TestHost> {
  const directory = mkdtempSync(join(tmpdir(), "slipway-channel-"));
  const socketPath = join(directory, "run.sock");
  const time = createFakeTime();
  const log = wrapLog(await openRunLog(join(directory, "log")));
  const channel = createRunChannel({ log, ...time });
  const failures: unknown[] = [];
  const server = createServer((request, response) => {
    const run = runIdSchema.parse(request.headers.authorization?.replace("Bearer ", ""));
    channel.handle(run, request, response).catch((error: unknown) => failures.push(error));
  });
  await once(server.listen(socketPath), "listening");
  const send: TestHost["send"] = (run, method, path, body) =>
    exchange(socketPath, run, method, path, body === undefined ? "" : JSON.stringify(body));
  return {
    time,
    socketPath,
    channel,
    log,
    failures,
    async openRun() {
      const id = newId("run");
      await channel.open({ id, task });
      return id;
    },
    send,
    sendEvents: (run, events) => send(run, "POST", "/run/events", { events }),
    stored: (run) => Array.fromAsync(log.read(run, 0)),
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      server.close();
      await once(server, "close");
      rmSync(directory, { recursive: true });
    },
  };
}

export async function exchange(
  socketPath: string,
  token: string,
  method: string,
  path: string,
  body: string,
): Promise<Answer> {
  const headers = { authorization: `Bearer ${token}`, "content-length": Buffer.byteLength(body) };
  const request = sendRequest({ socketPath, method, path, headers, agent: false });
  request.end(body);
  const [response] = (await once(request, "response")) as [IncomingMessage];
  const text = Buffer.concat(await response.toArray()).toString();
  return { status: response.statusCode ?? 0, headers: response.headers, body: JSON.parse(text) };
}

export function note(sequence: number, text = `note ${sequence}`): NumberedEvent {
  return { sequence, at: 1, event: { type: "note", agent: "lead", text } };
}

export function notes(from: number, to: number): NumberedEvent[] {
  return Array.from({ length: to - from + 1 }, (_, index) => note(from + index));
}

export function end(sequence: number): NumberedEvent {
  return { sequence, at: 1, event: { type: "ended", end: { reason: "completed", message: "done" } } };
}
