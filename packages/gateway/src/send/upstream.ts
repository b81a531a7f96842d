import { Pool } from "undici";
import type { DialectName } from "../dialects/dialect.ts";
import type { Endpoint } from "../settings/endpoints.ts";
import type { Timeouts } from "../settings/settings.ts";
import { type Answer, PendingAnswer } from "./answer.ts";
import { withoutKey } from "./endpoint-key.ts";

/** A request as the endpoint gets it. */
export interface UpstreamRequest {
  readonly endpoint: Endpoint;
  readonly dialect: DialectName;
  /** Below `/v1`. */
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Buffer;
}

/**
 * Tries a request once. Fails with `model_unreachable`, `model_timeout` or the signal's reason. A later abort ends the
 * body with its reason. Calls `onSent` when the endpoint gets the request.
 */
export type Send = (request: UpstreamRequest, signal: AbortSignal, onSent: () => void) => Promise<Answer>;

export interface Upstream extends AsyncDisposable {
  readonly send: Send;
}

/** Talks to endpoints over pooled connections. */
export function createUpstream(timeouts: Timeouts): Upstream {
  const pools = new Map<string, { readonly pool: Pool; readonly prefix: string }>();
  const reach = (endpoint: Endpoint) => {
    const known = pools.get(endpoint.provider);
    if (known !== undefined) return known;
    const opened = openPool(endpoint, timeouts);
    pools.set(endpoint.provider, opened);
    return opened;
  };
  return {
    send: ({ endpoint, path, headers, body }, signal, onSent) =>
      new Promise((resolve, reject) => {
        if (signal.aborted) return reject(signal.reason);
        const { pool, prefix } = reach(endpoint);
        const answered = (answer: Answer) => resolve(withoutKey(answer, endpoint));
        const options = { provider: endpoint.provider, timeouts, signal, onSent, resolve: answered, reject };
        const allHeaders = { ...headers, "content-type": "application/json" };
        pool.dispatch(
          { method: "POST", path: `${prefix}${path}`, headers: allHeaders, body },
          new PendingAnswer(options),
        );
      }),
    async [Symbol.asyncDispose]() {
      await Promise.all([...pools.values()].map(({ pool }) => pool.destroy()));
    },
  };
}

function openPool(endpoint: Endpoint, timeouts: Timeouts) {
  const { origin, pathname } = new URL(endpoint.baseUrl);
  const pool = new Pool(origin, {
    ...(endpoint.socketPath === undefined ? {} : { socketPath: endpoint.socketPath }),
    connectTimeout: timeouts.connectMs,
    // The answer has its own timers: one for the first byte, and none while the agent reads slowly.
    headersTimeout: 0,
    bodyTimeout: 0,
    // One broken connection takes only one request with it.
    allowH2: false,
  });
  return { pool, prefix: pathname };
}
