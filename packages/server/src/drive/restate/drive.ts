import { randomUUID } from "node:crypto";
import { type ObjectContext, object, RestatePromise, TerminalError } from "@restatedev/restate-sdk";
import { type BuildId, buildIdSchema, printable, SlipwayError, settingsError } from "@slipway/contract";
import { z } from "zod";
import type { Drive, DriveParts, OpenDrive, TakeTurn } from "../drive.ts";
import { createTurns, retryMs } from "../turns.ts";
import { createRestateApi, type RestateAddress, sameAddress } from "./api.ts";
import { findRestate, type RestateSettings } from "./connect.ts";
import { serveEndpoint } from "./endpoint.ts";

/** By a Restate that others run: several servers wake each other's builds, and timers outlive this process. */
export async function restateDrive(settings: RestateSettings): Promise<OpenDrive> {
  const address = await findRestate(settings);
  return (parts) => openRestateDrive({ ...parts, ...settings, address });
}

export interface RestateDriveParts extends DriveParts, Pick<RestateSettings, "identityKey" | "host"> {
  readonly address: RestateAddress;
  /** After so many turns the next generation goes on, since a turn costs more the longer the journal is. */
  readonly maxTurns?: number | undefined;
}

const servicePrefix = "buildLoop-";
const inputSchema = z.object({ generation: z.int().min(1) });

export async function openRestateDrive(parts: RestateDriveParts): Promise<Drive> {
  const { address, identityKey, host, name, maxTurns = 100, warn } = parts;
  const service = servicePrefix + name;
  const turns = createTurns(parts);
  const definition = defineLoop({ service, holder: name, maxTurns, turn: turns.run });
  const api = createRestateApi(address);
  const closing = new AbortController();
  await using stack = new AsyncDisposableStack();
  const endpoint = stack.use(await serveEndpoint({ objects: [definition], identityKey, host, warn }));
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
  /** Restate may have lost its data, and whoever reaches its admin address can name other handlers for the service. */
  const checkRegistered = async () => {
    const found = await api.servedAt(service);
    if (found !== undefined && sameAddress(found, endpoint.uri)) return;
    warn(`Restate ${found === undefined ? "has lost" : `calls ${printable(found)} for`} ${service}: registered again`);
    await register();
  };
  stack.defer(turns.drain);
  // Whoever has its name next is not forgotten.
  stack.defer(() => closing.abort());
  const kill = inBatches(async (builds: readonly BuildId[]) => {
    // A loop that is just handing over may have sent its next generation meanwhile.
    for (let left = builds; left.length > 0; ) left = await api.kill(left, servicePrefix);
  });
  const opened = stack.move();
  return {
    async drive(build, generation) {
      await checkRegistered();
      await kill(build);
      const call = { service, key: build, handler: "drive", input: { generation }, idempotencyKey: randomUUID() };
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
  readonly turn: TakeTurn;
}

function defineLoop({ service, holder, maxTurns, turn }: LoopDefinition) {
  const drive = async (context: ObjectContext, input: unknown): Promise<void> => {
    const build = expect(buildIdSchema, context.key);
    const { generation } = expect(inputSchema, input);
    for (let count = 0; count < maxTurns; count++) {
      const bell = context.awakeable<null>();
      const result = await context.run("tick", () => turn(build, { holder, generation }, bell.id), {
        initialRetryInterval: retryMs.first,
        maxRetryInterval: retryMs.longest,
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
      retryPolicy: { initialInterval: retryMs.first, exponentiationFactor: 2, maxInterval: retryMs.longest },
    },
  });
}

function expect<T>(schema: z.ZodType<T>, value: unknown): T {
  const { data, error } = schema.safeParse(value);
  if (error) throw new TerminalError(`not a build to drive: ${z.prettifyError(error)}`, { errorCode: 400 });
  return data as T;
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
