import { randomUUID } from "node:crypto";
import { type ObjectContext, object, RestatePromise, TerminalError } from "@restatedev/restate-sdk";
import { type BuildId, buildIdSchema, printable, SlipwayError, settingsError } from "@slipway/contract";
import { z } from "zod";
import type { Drive, DriveParts, OpenDrive, TakeTurn } from "../drive.ts";
import { createTurns, retryMs } from "../turns.ts";
import { checkHealth, createRestateApi, type RestateAddress, sameAddress } from "./api.ts";
import { serveEndpoint } from "./endpoint.ts";

export interface RestateSettings {
  /** RESTATE_URL: the ingress. */
  readonly url: string;
  /** RESTATE_ADMIN_URL. Default: port 9070 of the same host, or admin.sock beside ingress.sock. */
  readonly adminUrl?: string | undefined;
  /** SLIPWAY_RESTATE_KEY: the public key of its request signatures. Other requests are refused. */
  readonly identityKey: string;
  /** SLIPWAY_SERVER_HOST: an address of this machine that Restate can reach. Default: loopback. */
  readonly host?: string | undefined;
}

const healthMs = 15_000;

/**
 * Drives builds by an external Restate: several servers wake each other's builds, and timers outlive this process. Fails with
 * `loop_unavailable` if Restate does not answer.
 */
export async function restateDrive(settings: RestateSettings): Promise<OpenDrive> {
  const ingress = new URL(settings.url);
  const address = { ingressUrl: ingress.href, adminUrl: settings.adminUrl ?? adminBeside(ingress).href };
  await checkHealth(address, healthMs);
  return (parts) => openRestateDrive({ ...parts, ...settings, address });
}

function adminBeside(ingress: URL): URL {
  return ingress.protocol === "unix:"
    ? new URL("admin.sock", ingress)
    : Object.assign(new URL(ingress), { port: "9070" });
}

export interface RestateDriveParts extends DriveParts, Pick<RestateSettings, "identityKey" | "host"> {
  readonly address: RestateAddress;
  /** After this many turns the next generation takes over, since turns cost more as the journal grows. */
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
    // Runs in the background: new invocations already come here.
    api
      .forgetOthers(service, endpoint.uri, closing.signal)
      .catch((error: Error) => warn(`Restate keeps old addresses: ${error.message}`));
  };
  await register();
  /** Restate may have lost its data, and anyone with access to its admin address can replace the service's handlers. */
  const checkRegistered = async () => {
    const found = await api.servedAt(service);
    if (found !== undefined && sameAddress(found, endpoint.uri)) return;
    warn(`Restate ${found === undefined ? "has lost" : `calls ${printable(found)} for`} ${service}: registered again`);
    await register();
  };
  stack.defer(turns.drain);
  // Another server with this name must not be forgotten.
  stack.defer(() => closing.abort());
  const kill = inBatches(async (builds: readonly BuildId[]) => {
    // A loop that is handing over may have sent its next generation meanwhile.
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
      // Nobody reads ended invocations.
      journalRetention: 0,
      idempotencyRetention: { minutes: 1 },
      retryPolicy: { initialInterval: retryMs.first, exponentiationFactor: 2, maxInterval: retryMs.longest },
    },
  });
}

function expect<T>(schema: z.ZodType<T>, value: unknown): T {
  const { data, error } = schema.safeParse(value);
  if (error) throw new TerminalError(`not a drivable build: ${z.prettifyError(error)}`, { errorCode: 400 });
  return data as T;
}

/** Items that arrive while a batch runs form the next batch. */
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
