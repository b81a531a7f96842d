import { compareIds } from "@slipway/contract";

/** What a build would use now. */
export interface Demand {
  readonly build: string;
  readonly user: string;
  readonly priority: number;
  readonly startedAtMs: number;
  /** Slots that it holds. They are not taken away. */
  readonly held: number;
  /** Slots that it could use, including those that it holds. */
  readonly wanted: number;
}

/**
 * Slots of the fleet for each build. Users share equally, however many builds they have; a priority counts only between
 * builds of the same user. Of equal builds the one with fewer slots goes first, then the older one.
 */
export function shareSlots(demands: readonly Demand[], slots: number): ReadonlyMap<string, number> {
  const builds = demands.map((demand) => ({ demand, granted: demand.held }));
  const held = new Map<string, number>();
  for (const { user, held: count } of demands) held.set(user, (held.get(user) ?? 0) + count);
  let free = slots - builds.reduce((sum, { granted }) => sum + granted, 0);
  for (; free > 0; free--) {
    const next = builds
      .filter(({ demand, granted }) => granted < demand.wanted)
      .reduce<Share | undefined>(
        (first, build) => (first === undefined || compareShares(build, first, held) < 0 ? build : first),
        undefined,
      );
    if (next === undefined) break;
    next.granted++;
    held.set(next.demand.user, (held.get(next.demand.user) ?? 0) + 1);
  }
  return new Map(builds.map(({ demand, granted }) => [demand.build, granted]));
}

interface Share {
  readonly demand: Demand;
  granted: number;
}

function compareShares(a: Share, b: Share, held: ReadonlyMap<string, number>): number {
  return (
    (held.get(a.demand.user) ?? 0) - (held.get(b.demand.user) ?? 0) ||
    compareIds(a.demand.user, b.demand.user) ||
    b.demand.priority - a.demand.priority ||
    a.granted - b.granted ||
    a.demand.startedAtMs - b.demand.startedAtMs ||
    compareIds(a.demand.build, b.demand.build)
  );
}
