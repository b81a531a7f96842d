import {
  type ClientHttp2Session,
  connect,
  constants,
  type Http2Session,
  type Http2Stream,
  performServerHandshake,
  type ServerHttp2Session,
} from "node:http2";
import type { Duplex } from "node:stream";
import type { Role } from "./handshake.ts";

/** Enough for the largest burst of a build; the agent inside refuses what it cannot take. */
const mostStreams = { control: 1024, channel: 256 };
const mebibyte = 1024 * 1024;

/** What each stream may have on its way before it is read, which is also what a slow reader makes its host hold. */
const windowBytes = { control: mebibyte, channel: 256 * 1024 };
/** All of a connection. The windows of streams are what holds back a sender. */
const connectionWindowBytes = 64 * mebibyte;

function optionsFor(role: Role) {
  return {
    settings: {
      enablePush: false,
      initialWindowSize: windowBytes[role],
      maxConcurrentStreams: mostStreams[role],
      maxHeaderListSize: 8192,
    },
    maxHeaderListPairs: 16,
    maxSendHeaderBlockLength: 8192,
    // For all streams together, in megabytes. A refused stream would look like a lost one.
    maxSessionMemory: 512,
    peerMaxConcurrentStreams: mostStreams[role],
  };
}

const heartbeatMs = 30_000;
/** A connection that is full of data is slow to answer. */
const answerMs = 20_000;

/** A ping by which the host gives its channel back: when the connection has closed, the socket inside has, too. */
export const farewell = Buffer.from("farewell");

/** The end of an authenticated connection that opens streams. */
export function clientSession(socket: Duplex, role: Role): ClientHttp2Session {
  return prepare(connect("http://link", { ...optionsFor(role), createConnection: () => socket }));
}

/** The end of an authenticated connection that serves streams. */
export function serverSession(socket: Duplex, role: Role): ServerHttp2Session {
  // The types name a socket of the network; any stream will do.
  return prepare(performServerHandshake(socket as Parameters<typeof performServerHandshake>[0], optionsFor(role)));
}

function prepare<Session extends Http2Session>(session: Session): Session {
  // `close` follows.
  session.on("error", () => undefined);
  setImmediate(() => {
    try {
      session.setLocalWindowSize(connectionWindowBytes);
    } catch {
      // Its socket has closed meanwhile.
      session.destroy();
    }
  });
  const timer = setInterval(async () => {
    if (!(await answers(session, answerMs))) session.destroy();
  }, heartbeatMs);
  timer.unref();
  session.once("close", () => clearInterval(timer));
  return session;
}

/** Whether the other end is there. */
export function answers(session: Http2Session, withinMs: number): Promise<boolean> {
  const { promise, resolve } = Promise.withResolvers<boolean>();
  const timer = setTimeout(resolve, withinMs, false);
  try {
    // False when too many wait for their answer already: those decide.
    if (session.destroyed || !session.ping((error) => resolve(error === null))) resolve(!session.destroyed);
  } catch {
    resolve(false);
  }
  return promise.finally(() => clearTimeout(timer));
}

/**
 * Makes a stream behave as a socket: destroying it, or losing its connection, is an error for both ends and no end, as which
 * Node would pass it on.
 */
export function asSocket<Stream extends Http2Stream>(stream: Stream): Stream {
  const destroy = stream._destroy.bind(stream);
  stream._destroy = (error, callback) => {
    const isSent = stream.writableFinished || (stream.closed && stream.rstCode === constants.NGHTTP2_NO_ERROR);
    destroy(error ?? (stream.readableEnded && isSent ? null : new Error("The stream was cut.")), callback);
  };
  // `close` follows.
  return stream.on("error", () => undefined) as Stream;
}
