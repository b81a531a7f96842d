import { openPlace, type Place, type PlaceOptions } from "./world/place.ts";
import type { StorePart } from "./world/store.ts";

/** What a world may have, in the order in which it is opened: each part may stand on those before it. */
const parts = {
  registry: async () => (await import("../work/workspaces/testing.ts")).openRegistry,
  standIn: async () => (await import("./world/stand-in.ts")).openStandIn,
  sandboxes: async () => (await import("./world/sandboxes.ts")).openSandboxes,
  server: async () => (await import("./world/server.ts")).openServer,
  demo: async () => (await import("./world/demo.ts")).openDemo,
  repository: async () => (await import("../work/repository/testing.ts")).openRepositoryPart,
  simulation: async () => (await import("./world/simulation.ts")).openSimulation,
  store: async () => (await import("./world/store.ts")).openStorePart,
  ticks: async () => (await import("./world/ticks.ts")).openTicks,
  steps: async () => (await import("./world/steps.ts")).openSteps,
  coordinator: async () => (await import("./world/coordinator.ts")).openCrashingCoordinator,
  model: async () => (await import("./world/model.ts")).openModel,
  planning: async () => (await import("../work/planning/testing.ts")).openPlanning,
  attempts: async () => (await import("../work/attempts/testing.ts")).openAttempts,
  gates: async () => (await import("../work/gates/testing.ts")).openGates,
  http: async () => (await import("../http/testing.ts")).openHttp,
};

/**
 * The surroundings of a test: a directory, and what the options name. There is a store as soon as a part behind it is named.
 * All of it is released in reverse order. Each part says in its file what it gives; types refuse one that lacks another.
 */
export async function openWorld<const O extends WorldOptions>(options: O & Sound<O>): Promise<World<O>> {
  const order = Object.keys(parts) as PartName[];
  const lastNamed = order.findLastIndex((name) => name in options);
  const names = order.filter((name, index) => name in options || (name === "store" && index <= lastNamed));
  await using held = new AsyncDisposableStack();
  const world = openPlace(options, new Set(names), held);
  for (const name of names) {
    const open = (await parts[name]()) as (options: unknown, world: unknown, held: AsyncDisposableStack) => unknown;
    // As they are: what a getter says may change.
    Object.defineProperties(world, Object.getOwnPropertyDescriptors(await open(options[name] ?? {}, world, held)));
  }
  const opened = held.move();
  return Object.assign(world, { [Symbol.asyncDispose]: () => opened.disposeAsync() }) as unknown as World<O>;
}

type Parts = typeof parts;
type PartName = keyof Parts;
type Open<K extends PartName> = Awaited<ReturnType<Parts[K]>>;
type OptionsOf<K extends PartName> = Parameters<Open<K>>[0];
type Below<K extends PartName> = Parameters<Open<K>>[1];
type GivenBy<K extends PartName> = Awaited<ReturnType<Open<K>>>;

export type WorldOptions = PlaceOptions & { readonly [K in PartName]?: OptionsOf<K> };
/** With these parts, and what they stand on. */
export type WorldWith<K extends PartName> = Place & AsyncDisposable & Both<{ [P in K]: GivenBy<P> & Below<P> }[K]>;
type World<O> = WorldWith<keyof O & PartName> & PlaceOf<O>;
type PlaceOf<O> = Place & (O extends { readonly clock: infer C } ? { readonly clock: C } : unknown);

/** What parts may stand on. */
type Asked<O> = PlaceOf<O> & StorePart & Both<{ [P in keyof O & PartName]: GivenBy<P> }[keyof O & PartName]>;
/** The same options, but for what is no part, or stands on what is not there. */
type Sound<O> = {
  readonly [K in keyof O]: K extends keyof WorldOptions
    ? K extends PartName
      ? Asked<O> extends Below<K>
        ? O[K]
        : never
      : O[K]
    : never;
};
/** All of a union's types at once. */
type Both<U> = (U extends unknown ? (one: U) => void : never) extends (all: infer All) => void ? All : never;
