import { randomUUID } from "node:crypto";
import { type ObjectContext, object, RestatePromise, TerminalError } from "@restatedev/restate-sdk";
import { type BuildId, buildIdSchema, SlipwayError, settingsError } from "@slipway/contract";
import type { LeaseHolder } from "@slipway/engine";
import { z } from "zod";
import { type Endpoint, serveEndpoint } from "./endpoint.ts";
import type { Restate } from "./restate.ts";
import { createRestateApi } from "./restate-api.ts";

/**
 * Drives builds by ticks that outlive this process. What Restate keeps of it is disposable: a build is driven on from the
 * store, in a generation of its own, whenever Restate, its data or a server is lost.
 */
export interface DurableLoop extends AsyncDisposable {
  /** Ends what drives the build anywhere, then drives it here, from now on in this generation. */
  drive(build: BuildId, generation: number): Promise<void>;
  /** Wakes the loop that waits for this bell. One that is old or unknown, or rings while Restate starts, may ring for nobody. */
  ring(bell: string): Promise<void>;
}

export interface DurableLoopOptions {
  readonly restate: Restate;
  /** Of this server among those that share a Restate. It holds the leases. */
  readonly name: string;
  /** An address of this machine that Restate can reach; loopback when left out. */
  readonly host?: string | undefined;
  readonly tick: DurableTick;
  /** After so many turns the next generation goes on, since a turn costs more the longer the journal is. */
  readonly maxTurns?: number | undefined;
  /** Restate was away and knows this server again. Without its data nothing is driven any more. */
  readonly onRestart?: ((restart: { readonly dataLost: boolean }) => void) | undefined;
  readonly warn?: ((message: string) => void) | undefined;
}

/** One turn. `bell` wakes the loop from now on. Nothing long happens in it, and it may be done again. */
export type DurableTick = (build: BuildId, by: LeaseHolder, bell: string) => Promise<DurableTurn>;
export type DurableTurn = { readonly over: true } | { readonly over: false; readonly waitMs: number };

const servicePrefix = "buildLoop-";
const inputSchema = z.object({ generation: z.int().min(1) });
const longestRetryMs = 5_000;
const drainMs = 5_000;

export async function openDurableLoop(options: DurableLoopOptions): Promise<DurableLoop> {
  const { restate, name, host, tick, maxTurns = 100, onRestart, warn = () => undefined } = options;
  if (!/^[A-Za-z0-9._-]{1,64}$/.test(name)) {
    throw settingsError([`SLIPWAY_SERVER_NAME: takes 1 to 64 letters, digits, dots, dashes and underscores`]);
  }
  const service = servicePrefix + name;
  const turns = createTurns(tick, warn);
  const definition = defineLoop({ service, holder: name, maxTurns, turn: turns.run });
  const api = createRestateApi(restate);
  const closing = new AbortController();
  await using parts = new AsyncDisposableStack();
  const endpoint: Endpoint = parts.use(
    await serveEndpoint({ objects: [definition], identityKey: restate.identityKey, host, warn }),
  );
  const register = async () => {
    const { refused } = endpoint;
    await api.register(endpoint.uri).catch((error) => {
      throw endpoint.refused > refused
        ? settingsError(["SLIPWAY_RESTATE_KEY: is not the key that this Restate signs with"])
        : error;
    });
    // Nobody waits for it: what is started from now on is started here.
    api
      .forgetOthers(service, endpoint.uri, closing.signal)
      .catch((error: Error) => warn(`Restate keeps old addresses: ${error.message}`));
  };
  await register();
  let recovery: Promise<void> | undefined;
  /** Restate may have lost all that it knew; whoever notices it first, all builds are told of. */
  const recover = () => {
    recovery ??= (async () => {
      const dataLost = !(await api.hasService(service));
      await register();
      onRestart?.({ dataLost });
    })().finally(() => {
      recovery = undefined;
    });
    return recovery;
  };
  parts.use(
    restate.onRestart(() => {
      recover().catch((error: Error) =>
        warn(`Restate is back, but does not take this server's handlers: ${error.message}`),
      );
    }),
  );
  parts.defer(turns.drain);
  // Whoever has its name next is not forgotten.
  parts.defer(() => closing.abort());
  const kill = inBatches(async (builds: readonly BuildId[]) => {
    // A loop that is just handing over may have sent its next generation meanwhile.
    for (let left = builds; left.length > 0; ) left = await api.kill(left, servicePrefix);
  });
  const opened = parts.move();
  return {
    async drive(build, generation) {
      await kill(build);
      const call = { service, key: build, handler: "drive", input: { generation }, idempotencyKey: randomUUID() };
      if (await api.send(call)) return;
      await recover();
      if (!(await api.send(call))) throw new SlipwayError("loop_unavailable", `Restate does not know ${service}`);
    },
    ring: (bell) => api.resolveAwakeable(bell),
    [Symbol.asyncDispose]: () => opened.disposeAsync(),
  };
}

type DriveInput = z.infer<typeof inputSchema>;

interface BuildLoop {
  drive(context: ObjectContext, input: DriveInput): Promise<void>;
}

interface LoopDefinition {
  readonly service: string;
  readonly holder: string;
  readonly maxTurns: number;
  readonly turn: DurableTick;
}

function defineLoop({ service, holder, maxTurns, turn }: LoopDefinition) {
  const drive = async (context: ObjectContext, input: unknown): Promise<void> => {
    const build = expect(buildIdSchema, context.key);
    const { generation } = expect(inputSchema, input);
    for (let count = 0; count < maxTurns; count++) {
      const bell = context.awakeable<null>();
      const result = await context.run("tick", () => turn(build, { holder, generation }, bell.id), {
        initialRetryInterval: 50,
        maxRetryInterval: longestRetryMs,
      });
      if (result.over) return;
      await RestatePromise.race([bell.promise, context.sleep(Math.ceil(result.waitMs))]);
    }
    const next = { generation: generation + 1 };
    context.objectSendClient<BuildLoop>({ name: service }, build).drive(next);
  };
  return object({
    name: service,
    handlers: { drive },
    options: {
      // Nobody asks for what has ended.
      journalRetention: 0,
      idempotencyRetention: { minutes: 1 },
      retryPolicy: { initialInterval: 50, exponentiationFactor: 2, maxInterval: longestRetryMs },
    },
  });
}

function expect<T>(schema: z.ZodType<T>, value: unknown): T {
  const { data, error } = schema.safeParse(value);
  if (error) throw new TerminalError(`not a build to drive: ${z.prettifyError(error)}`, { errorCode: 400 });
  return data as T;
}

/** Knows the turns that are being taken, so that an orderly end waits for them. */
function createTurns(tick: DurableTick, warn: (message: string) => void) {
  const running = new Set<Promise<unknown>>();
  let closing = false;
  return {
    async run(build: BuildId, by: LeaseHolder, bell: string): Promise<DurableTurn> {
      if (closing) throw new SlipwayError("aborted", "this server ends");
      const turn = tick(build, by, bell);
      running.add(turn);
      try {
        return await turn;
      } catch (error) {
        // Another one drives the build, or there is none: this loop has nothing to do any more.
        if (error instanceof SlipwayError && endings.includes(error.code)) return { over: true };
        warn(`a turn of ${build} failed and is taken again: ${error instanceof Error ? error.message : error}`);
        throw error;
      } finally {
        running.delete(turn);
      }
    },
    async drain(): Promise<void> {
      closing = true;
      const { promise, resolve } = Promise.withResolvers<void>();
      const timer = setTimeout(resolve, drainMs);
      await Promise.race([promise, Promise.allSettled(running)]);
      clearTimeout(timer);
    },
  };
}

/** What is asked for while one batch is under way is the next batch. */
function inBatches<T>(run: (batch: readonly T[]) => Promise<void>): (item: T) => Promise<void> {
  let last: Promise<void> = Promise.resolve();
  let open: T[] | undefined;
  return (item) => {
    if (open === undefined) {
      const batch: T[] = [];
      open = batch;
      last = last
        .catch(() => undefined)
        .then(() => {
          open = undefined;
          return run(batch);
        });
    }
    open.push(item);
    return last;
  };
}

const endings: readonly string[] = ["lease_lost", "build_not_found"];
