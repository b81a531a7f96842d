import type { CreateSandboxInput, SandboxEvent, SandboxInfo, SnapshotId } from "@slipway/contract";
import { parseCreate, parseImage } from "../../input.ts";
import type {
  CallOptions,
  EventOptions,
  ListFilter,
  OwnedSandbox,
  ReconcileReport,
  Sandbox,
  SandboxProvider,
  Snapshots,
} from "../../provider.ts";
import type { Box } from "./box.ts";
import { simulatedCapabilities } from "./capabilities.ts";
import { type Clock, createManualClock } from "./clock.ts";
import { Connection } from "./connection.ts";
import { asError, type Faults, type Operation } from "./faults.ts";
import { createCountingIds, type Ids } from "./ids.ts";
import { throwIfAborted } from "./notifier.ts";
import type { SimulatedProgram } from "./program.ts";
import { SimulatedSandbox } from "./sandbox.ts";
import { type ProgramFinder, World } from "./world.ts";

export interface SimulatedSettings {
  readonly name?: string;
  /** The only time the provider knows; a manual one, standing still, unless given. */
  readonly clock?: Clock;
  readonly ids?: Ids;
  /** What can be run: by the program's name, or found by its arguments. */
  readonly programs?: Readonly<Record<string, SimulatedProgram>> | ProgramFinder;
  /** How long calls take; no time unless said. */
  readonly latenciesMs?: Readonly<Partial<Record<Operation, number>>>;
  /** Creates beyond this are refused as `provider_unavailable`. */
  readonly maxSandboxes?: number;
  readonly keptEvents?: number;
}

export interface SimulatedProvider extends SandboxProvider {
  readonly faults: Faults;
  /** Another coordinator of the same sandboxes. Disposing either is its death: its own calls and streams fail, nothing else. */
  another(): SimulatedProvider;
}

/** A provider in memory. It plays scripted programs, keeps to the whole port, and fails when told. */
export function createSimulatedProvider(settings: SimulatedSettings = {}): SimulatedProvider {
  const clock = settings.clock ?? createManualClock();
  const world = new World({
    name: settings.name ?? "simulated",
    clock,
    ids: settings.ids ?? createCountingIds(clock),
    find: finder(settings.programs ?? {}),
    latenciesMs: settings.latenciesMs ?? {},
    maxSandboxes: settings.maxSandboxes ?? Number.POSITIVE_INFINITY,
    keptEvents: settings.keptEvents ?? 100_000,
  });
  return connect(world, new Set());
}

function connect(world: World, connections: Set<Connection>): SimulatedProvider {
  const connection = new Connection(world);
  connections.add(connection);
  return {
    name: world.providerName,
    capabilities: simulatedCapabilities,
    create: async (input, options) => await create(connection, input, options),
    get: async (id, options) =>
      await connection.call("get", options, (): Sandbox => new SimulatedSandbox(world.box(id), connection)),
    list: async (filter = {}, options = {}) => await connection.call("list", options, () => list(world, filter)),
    snapshots: snapshotsOf(connection),
    async prepareImage(image, options) {
      parseImage(image, simulatedCapabilities);
      await connection.call("prepareImage", options, () => undefined);
    },
    events: (options = {}) => events(connection, options),
    reconcile: async (options) => await connection.call("reconcile", options, () => reconcile(world)),
    faults: faultsOf(world, connections),
    another: () => connect(world, connections),
    async [Symbol.asyncDispose]() {
      connections.delete(connection);
      connection.close();
    },
  };
}

async function create(
  connection: Connection,
  input: CreateSandboxInput,
  options: CallOptions = {},
): Promise<OwnedSandbox> {
  const { world } = connection;
  const request = parseCreate(input, simulatedCapabilities);
  const lost = await connection.begin("create", options.signal);
  const box = world.create(request);
  if (box.state === "creating") box.start();
  if (lost !== null) throw lost;
  return new SimulatedSandbox(box, connection);
}

function list(world: World, { states, labels = {} }: ListFilter): SandboxInfo[] {
  const wanted = Object.entries(labels);
  const matches = ({ state, request }: Box) =>
    (states === undefined || states.includes(state)) && wanted.every(([name, value]) => request.labels[name] === value);
  return [...world.boxes.values()].filter(matches).map((box) => box.info());
}

function snapshotsOf(connection: Connection): Snapshots {
  const { world } = connection;
  return {
    list: async (options) =>
      await connection.call("snapshots.list", options, () => [...world.snapshots.values()].map(({ info }) => info)),
    get: async (id: SnapshotId, options) =>
      await connection.call("snapshots.get", options, () => world.snapshot(id).info),
    update: async (id, change, options) =>
      await connection.call("snapshots.update", options, () => world.updateSnapshot(id, change)),
    delete: async (id, options) => await connection.call("snapshots.delete", options, () => world.deleteSnapshot(id)),
  };
}

async function* events(connection: Connection, options: EventOptions): AsyncGenerator<SandboxEvent> {
  throwIfAborted(options.signal);
  yield* connection.world.events.read({ ...options, signal: connection.during(options.signal) });
}

/** A lost sandbox has no process left, so there is nothing to adopt or to end. */
function reconcile(world: World): ReconcileReport {
  const lost = [...world.boxes.values()].filter(({ reason }) => reason === "provider_lost").map(({ id }) => id);
  return { adopted: [], lost, ended: [], layersRemoved: 0 };
}

function faultsOf(world: World, connections: ReadonlySet<Connection>): Faults {
  return {
    failNext: (operation, error, { when = "before" } = {}) =>
      world.faults.add(operation, { type: "fail", error: asError(error), when }),
    slowNext: (operation, ms) => world.faults.add(operation, { type: "slow", ms }),
    hangNext: (operation) => world.faults.add(operation, { type: "hang" }),
    cutStreams() {
      for (const connection of connections) connection.cut();
    },
    lose: (sandbox) => world.box(sandbox).lose(),
    outOfMemory: (sandbox) => world.box(sandbox).runOutOfMemory(),
  };
}

function finder(programs: NonNullable<SimulatedSettings["programs"]>): ProgramFinder {
  if (typeof programs === "function") return programs;
  const table = new Map(Object.entries(programs));
  return ([name = ""]) => table.get(name) ?? table.get(name.replace(/^(\/usr)?(\/local)?\/bin\//, ""));
}
