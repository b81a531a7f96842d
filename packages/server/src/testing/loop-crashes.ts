import process from "node:process";
import { setTimeout as delay } from "node:timers/promises";
import { type BuildId, hasCode } from "@slipway/contract";
import type { Bridge, Store } from "@slipway/engine";
import { openBridge } from "@slipway/store/bridge";
import { expect, test } from "vitest";
import { between, draw } from "../simulated/chance.ts";
import { type SimulationSettings, usualWorld } from "../simulated/fate.ts";
import { allEvents } from "./all-events.ts";
import { endOf, endWithoutFaults, examineBuild } from "./examine.ts";
import { numberedBuild } from "./numbered-build.ts";
import { tellStuck } from "./tell-stuck.ts";
import { type DriveName, type Fault, faultsOf } from "./world/coordinator.ts";
import { openWorld, type WorldWith } from "./world.ts";

/** By which dice processes are killed. */
const seed = Number(process.env["SLIPWAY_SEED"]);

const world: SimulationSettings = {
  ...usualWorld,
  seed,
  tasks: [3, 7],
  edgeProbability: 0.25,
  estimateMinutes: [60, 120],
  pace: 0.001,
  steps: [2, 4],
  stageMs: [200, 2000],
  rounds: 3,
  shares: { failed: 0.3, interrupted: 0.1, died: 0.15, lost: 0.02, fixed: 0, unsatisfied: 0.3, unplannable: 0.1 },
};
const buildsAtOnce = 6;
const poorMicroUsd = 150_000;
/** No recovery takes so long. */
const stuckMs = 240_000;

type CrashWorld = WorldWith<"coordinator">;
type Kind = "plain" | "poor" | "cancelled" | "paused";

interface StartedBuild {
  readonly id: BuildId;
  readonly kind: Kind;
  readonly number: number;
  readonly startedAt: number;
  /** The last event that its user has seen a turn take in: turns without news are no move. */
  through: number;
}

/** So many processes are killed in all. */
export function testLoopCrashes(crashes: number, drive: DriveName): void {
  test(`builds that ${drive} drive end as without faults, whatever is killed`, async () => {
    console.log(`SLIPWAY_SEED=${seed}`);
    await using set = await openWorld({ simulation: { settings: world, factor: 20 }, coordinator: drive });
    await using listeners = await listenToBridge(set);
    const users = tendBuilds(set, listeners.listen);
    for (let number = 1; number <= crashes; number++) {
      // Now and then what has just been started is killed, too.
      if (draw(seed, "patience", number) < 0.8) await users.progress();
      await delay(between([0, 800], draw(seed, "moment", number)));
      await set.strike(faultOf(drive, number));
    }
    await set.coordinator.ready;
    const builds = await users.finish();
    while (set.simulation.alive().length > 0) await delay(50);
    await set.simulation.settled();
    expect(Math.max(...set.record.steps.values())).toBe(1);
    expect(Math.max(...set.record.starts.values())).toBe(1);
    for (const build of builds) await examine(set, build);
    for (const { id } of builds) await examineBridge(set, id, listeners);
  }, 1_800_000);
}

function faultOf(drive: DriveName, number: number): Fault {
  const faults = faultsOf[drive];
  return faults[Math.floor(draw(seed, "fault", number) * faults.length)] ?? "coordinator";
}

/** Users who start builds as long as there are crashes, raise budgets, pause, resume and cancel. */
function tendBuilds(set: CrashWorld, onStart: (build: BuildId) => void) {
  const all: StartedBuild[] = [];
  let open: StartedBuild[] = [];
  let isLast = false;
  /** What turns have taken in, of all builds. */
  let taken = 0;
  let movedAt = Date.now();
  const start = async () => {
    const number = all.length + 1;
    const build = { id: numberedBuild(number, seed), kind: kindOf(number), number, startedAt: Date.now(), through: 0 };
    await set.create({
      id: build.id,
      ...(build.kind === "poor" && { budgetMicroUsd: poorMicroUsd }),
    });
    onStart(build.id);
    all.push(build);
    open.push(build);
  };
  const look = async () => {
    set.coordinator.check();
    while (!isLast && open.length < buildsAtOnce) await start();
    for (const build of [...open]) {
      const { through, isOver } = await tend(set, build);
      if (through > build.through) movedAt = Date.now();
      taken += through - build.through;
      build.through = through;
      if (isOver) open = open.filter((one) => one !== build);
    }
    if (Date.now() - movedAt > stuckMs) throw new Error(`no build moves: ${await tellAll(set, open)}`);
  };
  const run = async () => {
    for (; !isLast || open.length > 0; await delay(100)) await look();
  };
  const running = run();
  // Seen by who waits for the end.
  running.catch(() => {});
  return {
    /** Until builds have moved. */
    async progress() {
      for (const before = taken; taken === before; ) await Promise.race([delay(50), running]);
    },
    async finish() {
      isLast = true;
      await running;
      return all;
    },
  };
}

async function tellAll(set: CrashWorld, builds: readonly StartedBuild[]): Promise<string> {
  const told = [];
  for (const { id, kind } of builds) told.push(`\n${kind} ${await tellStuck(set, id)}`);
  return `${told.join("")}\nthe coordinator says: ${set.coordinator.told}`;
}

function kindOf(number: number): Kind {
  const drawn = draw(seed, "kind", number);
  return drawn < 0.5 ? "plain" : drawn < 0.75 ? "poor" : drawn < 0.9 ? "cancelled" : "paused";
}

/** What the build's user does now: rows in the store, whether a coordinator runs or not. */
async function tend({ store }: CrashWorld, { id, kind, number, startedAt }: StartedBuild) {
  const { status, reason, appliedThrough: through, endedAt } = await store.builds.get(id);
  // A coordinator that the machine lets wait may hold the lock for long: who was refused asks again.
  const order = (type: string, data = {}, key = type) =>
    store.events.report(id, [{ type, key, data }]).catch((error) => {
      if (!hasCode(error, "database_busy")) throw error;
    });
  const dueMs = startedAt + between([500, 8000], draw(seed, "order", number));
  if (status === "paused" && reason === "budget") {
    const budgetMicroUsd = 2 * (await store.ledger.balance(id)).budgetMicroUsd;
    await order("order.budget", { budgetMicroUsd }, `order.budget:${budgetMicroUsd}`);
  }
  if (endedAt === null && kind === "cancelled" && Date.now() > dueMs) await order("order.cancel");
  if (endedAt === null && kind === "paused" && Date.now() > dueMs) await order("order.pause");
  if (endedAt === null && kind === "paused" && Date.now() > dueMs + 2000) await order("order.resume");
  return { through, isOver: endedAt !== null };
}

async function examine({ store, record }: CrashWorld, { id, kind }: StartedBuild): Promise<void> {
  await examineBuild(store, record, id);
  const ended = await endOf(store, id);
  const expected = await endWithoutFaults(world, id);
  if (ended.status === "cancelled") {
    // When it was cancelled is chance; what it had done by then is not.
    expect(expected.merged, id).toEqual(expect.arrayContaining(ended.merged));
  } else {
    const odd = new Set(ended.attempts).symmetricDifference(new Set(expected.attempts));
    expect(ended, `${id}: ${await oddEvents(store, id, odd)}`).toEqual(expected);
  }
  expect(ended.status === "cancelled" ? "cancelled" : kind, id).toBe(kind);
}

/** What happened to the tasks whose attempts are not the expected ones. */
async function oddEvents(store: Store, id: BuildId, odd: ReadonlySet<string>): Promise<string> {
  const tasks = new Set([...odd].map((name) => name.split(" ")[0]));
  const events = (await allEvents(store, id)).filter(({ data }) => tasks.has(String(data["task"])));
  return events.map(({ sequence, at, type, data }) => `\n${sequence} ${at} ${type} ${JSON.stringify(data)}`).join("");
}

interface BridgeListeners extends AsyncDisposable {
  readonly bridge: Bridge;
  listen(build: BuildId): void;
  /** The offsets that came, in the order in which they did. */
  heard(build: BuildId): readonly number[];
}

/** Somebody in another process than who publishes, over Redis or without it. */
async function listenToBridge({ database, clock, redisUrl }: CrashWorld): Promise<BridgeListeners> {
  const bridge = await openBridge({ database, clock, redis: { url: redisUrl } });
  const stop = new AbortController();
  const heard = new Map<BuildId, number[]>();
  const listening: Promise<void>[] = [];
  const listen = async (build: BuildId) => {
    const offsets: number[] = [];
    heard.set(build, offsets);
    for await (const { offset } of bridge.subscribe(build, { after: 0, signal: stop.signal })) offsets.push(offset);
  };
  return {
    bridge,
    listen: (build) => void listening.push(listen(build)),
    heard: (build) => heard.get(build) ?? [],
    async [Symbol.asyncDispose]() {
      stop.abort();
      await Promise.allSettled(listening);
      await bridge.close();
    },
  };
}

/** Each step that was finished was told once, in one order, to all. */
async function examineBridge({ store }: CrashWorld, id: BuildId, { bridge, heard }: BridgeListeners): Promise<void> {
  const keys: string[] = [];
  for (let page = await bridge.read(id, { after: 0 }); page.messages.length > 0; ) {
    for (const { offset, key } of page.messages) expect(offset).toBe(keys.push(key));
    page = await bridge.read(id, { after: page.next });
  }
  const made = (await allEvents(store, id)).filter(({ type }) => type === "checkpoint.made").map(({ key }) => key);
  expect(keys.toSorted()).toEqual(made.toSorted());
  while (heard(id).length < keys.length) await delay(50);
  expect(heard(id)).toEqual(keys.map((_, index) => index + 1));
}
