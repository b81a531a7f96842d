import { mkdtemp, rm } from "node:fs/promises";
import { join } from "node:path";
import {
  type Accounting,
  createAccounting,
  leastRequest,
  listPrices,
  type Metered,
  type Prices,
} from "./accounting.ts";
import type { Boxes } from "./boxes/boxes.ts";
import { openLocalBoxes } from "./boxes/local.ts";
import { openWithoutProcesses } from "./boxes/without.ts";
import { openCertificates } from "./certificates.ts";
import { createClock, type MovableClock } from "./clock.ts";
import { loadCodecs } from "./codecs.ts";
import { directoryMethods } from "./directories.ts";
import { createFaultPlan } from "./fault-plan.ts";
import { createFaults, type Faults } from "./faults.ts";
import { createImages } from "./images/images.ts";
import { createApps } from "./objects/apps.ts";
import { createSecrets } from "./objects/secrets.ts";
import { createVolumes } from "./objects/volumes.ts";
import { populate } from "./populate.ts";
import { execMethods, routerAccess } from "./router.ts";
import { createConnectTokens } from "./sandboxes/connect-tokens.ts";
import { firstGenerationStreams } from "./sandboxes/logs.ts";
import { sandboxMethods } from "./sandboxes/methods.ts";
import type { Sandbox } from "./sandboxes/sandbox.ts";
import { createSandboxes } from "./sandboxes/sandboxes.ts";
import { serve } from "./serve.ts";
import { snapshotMethods } from "./snapshots.ts";
import { createTokens } from "./tokens.ts";

export interface ModalStandInOptions {
  /** 0, the default: a free one. */
  readonly port?: number;
  /** False: sandboxes are records only, so that there can be many. */
  readonly processes?: boolean;
  readonly prices?: Prices;
  /** Of this machine's programs, such as npm, whose registries images may use. */
  readonly environment?: Readonly<Record<string, string | undefined>>;
}

/** A server that speaks Modal's wire protocol on loopback. Disposing of it ends every sandbox and leaves nothing. */
export interface ModalStandIn extends AsyncDisposable {
  /** For `MODAL_SERVER_URL`. */
  readonly url: string;
  /** The only ones that it accepts. */
  readonly tokenId: string;
  readonly tokenSecret: string;
  /** The three variables that point a client at it. */
  readonly environment: Readonly<Record<"MODAL_SERVER_URL" | "MODAL_TOKEN_ID" | "MODAL_TOKEN_SECRET", string>>;
  /** The certificate of the authority that signed the tunnels' one. */
  readonly caFile: string;
  readonly faults: Faults;
  readonly clock: MovableClock;
  readonly accounting: Accounting;
  /** How often each method was called, by its name on the wire. */
  readonly calls: ReadonlyMap<string, number>;
  /** Ids of the sandboxes that run. */
  running(): string[];
  /** Makes a named secret, as somebody does on Modal's own pages. */
  addSecret(name: string, variables: Readonly<Record<string, string>>, environmentName?: string): void;
  /** Makes many sandboxes at once, without a client. */
  populate(count: number, appName: string, tags?: Readonly<Record<string, string>>): Promise<void>;
}

export async function startModalStandIn(options: ModalStandInOptions = {}): Promise<ModalStandIn> {
  const { port = 0, processes = true, prices = listPrices, environment = process.env } = options;
  await using undo = new AsyncDisposableStack();
  const directory = await mkdtemp("/var/tmp/modal-stand-in-server-");
  undo.defer(() => rm(directory, { recursive: true, force: true }));
  const boxes: Boxes = undo.use(processes ? openLocalBoxes(environment) : openWithoutProcesses());
  const [codecs, certificates] = await Promise.all([loadCodecs(), openCertificates(directory)]);
  const clock = createClock();
  const plan = createFaultPlan();
  const tokens = createTokens();
  const apps = createApps(tokens);
  const secrets = createSecrets();
  const volumes = createVolumes(join(directory, "volumes"));
  const images = createImages({ boxes, secrets, clock, faults: plan });
  const sandboxes = undo.use(createSandboxes());
  const connectTokens = undo.use(createConnectTokens(tokens, sandboxes.get));
  const routerParts = { sandboxes, secrets, tokens, clock };
  const access = routerAccess(routerParts);
  const calls = new Map<string, number>();
  let latest = 0;
  const nextCreatedAt = () => {
    latest = Math.max(clock.now() / 1000, latest + 0.000_01);
    return latest;
  };
  const create = {
    boxes,
    clock,
    faults: plan,
    images,
    secrets,
    volumes,
    tokens,
    certificates,
    directory,
    nextCreatedAt,
  };
  const gpus = new Set([...Object.keys(listPrices.gpu), ...Object.keys(prices.gpu)]);
  const routerUrl = () => `https://127.0.0.1:${front.port}`;
  const front = await serve({
    codecs,
    control: {
      ...apps.methods,
      ...secrets.methods,
      ...volumes.methods,
      ...images.methods,
      ...firstGenerationStreams(sandboxes),
      ...sandboxMethods({ apps, sandboxes, create, tokens, connectTokens, routerUrl, gpus }),
    },
    router: {
      ...execMethods(routerParts, access),
      ...snapshotMethods(images, access),
      ...directoryMethods(images, access, join(directory, "directories")),
    },
    tokens,
    faults: plan,
    directory,
    port,
    calls,
  });
  undo.use(front);
  const url = `http://127.0.0.1:${front.port}`;
  const open = undo.move();
  return {
    url,
    tokenId: tokens.id,
    tokenSecret: tokens.secret,
    environment: { MODAL_SERVER_URL: url, MODAL_TOKEN_ID: tokens.id, MODAL_TOKEN_SECRET: tokens.secret },
    caFile: certificates.caFile,
    clock,
    calls,
    accounting: createAccounting(prices, clock.now, () => sandboxes.ever().map(metered)),
    faults: createFaults({ plan, front, tokens, sandboxes }),
    running: () =>
      sandboxes
        .all()
        .filter(({ result }) => result === undefined)
        .map(({ id }) => id),
    populate: (count, appName, tags) => populate({ apps, images, sandboxes, create }, count, appName, tags),
    addSecret: (name, variables, environmentName) => void secrets.add(name, variables, environmentName),
    [Symbol.asyncDispose]: () => open[Symbol.asyncDispose](),
  };
}

function metered({ id, name, tags, definition: { resources }, startedAtMs, endedAtMs }: Sandbox): Metered {
  const { gpuType = "", count = 0 } = resources?.gpuConfig ?? {};
  return {
    sandboxId: id,
    name,
    tags: Object.fromEntries(tags.map(({ tagName, tagValue }) => [tagName, tagValue])),
    cpu: resources?.milliCpu ? resources.milliCpu / 1000 : leastRequest.cpu,
    memoryMib: resources?.memoryMb || leastRequest.memoryMib,
    gpu: gpuType === "" ? null : { type: gpuType, count },
    startedAtMs,
    endedAtMs,
  };
}
