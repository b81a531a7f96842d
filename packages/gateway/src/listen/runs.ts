import { type ErrorCode, type RunId, SlipwayError } from "@slipway/contract";
import { createRate, type Rate } from "../channel/rate.ts";
import type { Responses } from "../deliver/responses.ts";
import { createEstimates, type Estimates } from "../pay/estimates.ts";
import type { Clock } from "../ports/ports.ts";
import type { Route } from "../settings/routes.ts";

/** What the gateway keeps about an open run. */
export interface RunEntry {
  readonly id: RunId;
  readonly routes: readonly Route[];
  readonly estimates: Estimates;
  readonly responses: Responses;
  /** Model requests under way, with their ends. Aborting one ends its exchange. */
  readonly exchanges: Map<AbortController, Promise<void>>;
  /** Resolves when none is under way. */
  quiet(): Promise<void>;
  /** Bytes of their bodies. */
  bodyBytes: number;
  /** Limits the bytes of all bodies. */
  readonly bodyRate: Rate;
  /** Why the run can no longer use models. */
  closed: SlipwayError | undefined;
}

/** The open runs of this process. */
export interface Runs {
  add(run: Pick<RunEntry, "id" | "routes" | "responses">): RunEntry;
  /** Fails with `provider_unavailable`: after a restart, the run may be opened soon. */
  get(id: RunId): RunEntry;
  /** Aborts what is under way and refuses new requests, with the given code. */
  close(id: RunId, code: ErrorCode, message: string): void;
  /** Closes the run and forgets it. */
  remove(id: RunId): void;
  ids(): RunId[];
}

/** Parsing blocks everyone. Working agents send far less. */
const bodyBytesPerSecond = 8 * 1024 * 1024;
const burstBodyBytes = 64 * 1024 * 1024;

export function createRuns(clock: Clock): Runs {
  const runs = new Map<RunId, RunEntry>();
  const close = (id: RunId, code: ErrorCode, message: string) => {
    const run = runs.get(id);
    if (run === undefined || run.closed !== undefined) return;
    run.closed = new SlipwayError(code, message);
    for (const exchange of run.exchanges.keys()) exchange.abort(run.closed);
  };
  return {
    add({ id, routes, responses }) {
      if (runs.has(id)) throw new SlipwayError("invalid_request", `${id} is already open`);
      const exchanges: RunEntry["exchanges"] = new Map();
      const run: RunEntry = {
        id,
        routes,
        responses,
        estimates: createEstimates(),
        exchanges,
        bodyBytes: 0,
        closed: undefined,
        bodyRate: createRate(bodyBytesPerSecond, burstBodyBytes, clock),
        async quiet() {
          while (exchanges.size > 0) await Promise.all(exchanges.values());
        },
      };
      runs.set(id, run);
      return run;
    },
    get(id) {
      const run = runs.get(id);
      if (run === undefined) throw new SlipwayError("provider_unavailable", `${id} is not open here`);
      return run;
    },
    close,
    remove(id) {
      close(id, "aborted", "the host closed the run");
      runs.delete(id);
    },
    ids: () => [...runs.keys()],
  };
}
