import { readyTasks } from "./schedule.ts";
import { type Demand, shareSlots } from "./shares.ts";
import type { BuildState } from "./state.ts";

/** Shares the slots of one server's fleet between the builds that it drives. */
export interface Fleet {
  /** Returns what the build may use, given what it would use now. */
  grant(demand: Demand): number;
  /** It has ended, or another server drives it. */
  forget(build: string): void;
}

/** `onMore`: the build may use more slots than it was last granted. */
export function createFleet(slots: number, onMore: (build: string) => void): Fleet {
  const demands = new Map<string, Demand>();
  const told = new Map<string, number>();
  let wanted = 0;
  let isScarce = false;
  const put = (build: string, demand: Demand | undefined) => {
    wanted += (demand?.wanted ?? 0) - (demands.get(build)?.wanted ?? 0);
    if (demand === undefined) demands.delete(build);
    else demands.set(build, demand);
  };
  const share = (asking?: string) => {
    isScarce = false;
    for (const [build, granted] of shareSlots([...demands.values()], slots)) {
      isScarce ||= granted < (demands.get(build)?.wanted ?? 0);
      const before = told.get(build) ?? 0;
      told.set(build, granted);
      if (build !== asking && granted > before) onMore(build);
    }
  };
  return {
    grant(demand) {
      const { build } = demand;
      put(build, demand);
      if (isScarce || wanted > slots) share(build);
      else told.set(build, demand.wanted);
      const granted = told.get(build) ?? 0;
      // It takes them in this turn, and asks with them in its next one.
      put(build, { ...demand, held: Math.max(demand.held, granted) });
      return granted;
    },
    forget(build) {
      put(build, undefined);
      told.delete(build);
      if (isScarce) share();
    },
  };
}

/** What a build would use now. */
export function demandOf(
  state: BuildState,
  { id, account, createdAt }: { readonly id: string; readonly account: string; readonly createdAt: number },
  nowMs: number,
): Demand {
  const held = state.attempts.filter(({ pausedAtMs }) => pausedAtMs === null).length;
  const waiting = state.attempts.length - held + readyTasks(state.tasks, nowMs).length;
  const wanted = state.status === "running" ? Math.max(held, Math.min(state.settings.slots, held + waiting)) : held;
  return { build: id, user: account, priority: state.settings.priority, startedAtMs: createdAt, held, wanted };
}
