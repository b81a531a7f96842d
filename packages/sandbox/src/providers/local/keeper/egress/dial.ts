import { connect, isIP, type Socket } from "node:net";
import { connect as connectTls, type SecureContextOptions } from "node:tls";

export type DialFailure = "refused" | "unreachable" | "timeout" | "tls";

/** Names the step that failed, and nothing of what was sent. */
export class DialError extends Error {
  readonly failure: DialFailure;

  constructor(failure: DialFailure, options?: ErrorOptions) {
    super(`The connection failed: ${failure}.`, options);
    this.name = "DialError";
    this.failure = failure;
  }
}

/** Connects to one of the checked addresses. Looks up nothing. */
export type DialAddresses = (
  addresses: readonly string[],
  port: number,
  timeoutMs: number,
  signal: AbortSignal,
) => Promise<Socket>;

/** The families race as in RFC 8305. */
export const dial: DialAddresses = async (addresses, port, timeoutMs, signal) => {
  const checked = addresses.map((address) => ({ address, family: isIP(address) }));
  const socket = connect({
    // `lookup` below answers for this name. An address here would skip the other addresses.
    host: "checked.invalid",
    port,
    lookup: (_host, _options, answer) => answer(null, checked),
    autoSelectFamily: true,
    autoSelectFamilyAttemptTimeout: 1000,
    allowHalfOpen: true,
    noDelay: true,
  });
  return settle(socket, "connect", timeoutMs, signal, dialFailure);
};

/** Speaks verified TLS, HTTP/1.1 only, on the socket. */
export async function secure(
  socket: Socket,
  servername: string,
  ca: SecureContextOptions["ca"],
  timeoutMs: number,
  signal: AbortSignal,
): Promise<Socket> {
  const secured = connectTls({
    socket,
    servername,
    host: servername,
    ca,
    ALPNProtocols: ["http/1.1"],
    rejectUnauthorized: true,
    minVersion: "TLSv1.2",
  });
  secured.once("close", () => socket.destroy());
  return settle(secured, "secureConnect", timeoutMs, signal, () => "tls");
}

async function settle(
  socket: Socket,
  ready: "connect" | "secureConnect",
  timeoutMs: number,
  signal: AbortSignal,
  classify: (error: unknown) => DialFailure,
): Promise<Socket> {
  const { promise, resolve, reject } = Promise.withResolvers<Socket>();
  const timer = setTimeout(() => reject(new DialError("timeout")), timeoutMs).unref();
  const onError = (error: Error) => reject(new DialError(classify(error), { cause: error }));
  const onAbort = () => reject(new DialError("unreachable", { cause: signal.reason }));
  const onClose = () => reject(new DialError("unreachable"));
  socket.once(ready, () => resolve(socket));
  socket.on("error", onError);
  socket.once("close", onClose);
  signal.addEventListener("abort", onAbort, { once: true });
  if (signal.aborted) onAbort();
  try {
    return await promise;
  } catch (error) {
    socket.destroy();
    throw error;
  } finally {
    clearTimeout(timer);
    signal.removeEventListener("abort", onAbort);
    // The error listener stays: an error before the next owner listens must not end the process.
    socket.off("close", onClose);
  }
}

function dialFailure(error: unknown): DialFailure {
  const causes = error instanceof AggregateError ? error.errors : [error];
  const codes = causes.map((cause) => (cause as NodeJS.ErrnoException).code);
  if (codes.includes("ECONNREFUSED")) return "refused";
  return codes.includes("ETIMEDOUT") ? "timeout" : "unreachable";
}
