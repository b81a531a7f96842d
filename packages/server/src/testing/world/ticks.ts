import type { BuildId } from "@slipway/contract";
import { createFleet, createTick, type ReportType, report, type Tick, type WorkItem } from "@slipway/engine";
import type { stillClock } from "./place.ts";
import { driver, type NewBuild, type StorePart } from "./store.ts";

/** A build that has a turn when it is told to, and work that writes down what it is asked for. */
export async function openTicks(
  given: NewBuild,
  { store, create, clock }: StorePart & { readonly clock: ReturnType<typeof stillClock> },
) {
  const { id: build } = await create(given);
  const asked: WorkItem[] = [];
  const reattached: (readonly WorkItem[])[] = [];
  const heard = new Map<string, number>();
  let refusal: Error | undefined;
  const work = {
    async carryOut(_: unknown, items: readonly WorkItem[]) {
      if (refusal !== undefined) throw refusal;
      asked.push(...items);
    },
    async reattach(_: unknown, items: readonly WorkItem[]) {
      if (refusal !== undefined) throw refusal;
      reattached.push(items);
    },
    heardAtMs: (_: BuildId, task: string, number: number) => heard.get(`${task}#${number}`),
  };
  const newTick = () => createTick({ store, work, fleet: createFleet(100, () => {}), clock });
  let tick: Tick = newTick();
  return {
    build,
    asked,
    reattached,
    heard,
    turn: (who = driver) => tick(build, who, null),
    restart() {
      tick = newTick();
    },
    now: clock.now,
    pass: clock.pass,
    refuse(error?: Error) {
      refusal = error;
    },
    tell: <T extends ReportType>(type: T, data: Parameters<typeof report<T>>[2], key: string | null = null) =>
      store.events.report(build, [report(type, key, data)]),
    /** What was asked since the last look. */
    look: () => asked.splice(0),
    status: async () => (await store.builds.get(build)).status,
    tasks: async () =>
      Object.fromEntries((await store.builds.state(build)).tasks.map(({ id, status }) => [id, status])),
    events: async () => (await store.events.read(build, 0, { source: "decision" })).map(({ type }) => type),
  };
}
