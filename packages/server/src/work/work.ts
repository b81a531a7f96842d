import type { BuildId } from "@slipway/contract";
import { itemsFor, type Work, type WorkItem } from "@slipway/engine";

/** Joins the work of planning with the work in sandboxes. Calls `ended` after the last of it. */
export function joinWork(
  planning: Pick<Work, "carryOut" | "reattach">,
  building: Work,
  ended: (build: BuildId) => Promise<void>,
): Work {
  const split = (items: readonly WorkItem[]) =>
    [itemsFor("planning", items), [...itemsFor("attempts", items), ...itemsFor("merging", items)]] as const;
  const canCarryOn = async (build: BuildId) => (await building.canCarryOn?.(build)) ?? true;
  return {
    canCarryOn,
    async carryOut(build, asked) {
      const [plans, others] = split(asked);
      if (plans.length > 0) await planning.carryOut(build, plans);
      if (others.length > 0) await building.carryOut(build, others);
    },
    async reattach(build, all) {
      // A build whose main is elsewhere can only be cancelled, which waits for a requested move of main.
      const wanted = (await canCarryOn(build.id)) ? all : all.filter(({ type }) => type === "merge");
      const [plans, others] = split(wanted);
      await planning.reattach(build, plans);
      await building.reattach(build, others);
    },
    async close(build, end) {
      await planning.reattach(build, []);
      if (building.close) await building.close(build, end);
      else await building.reattach(build, []);
      await ended(build.id);
    },
    heardAtMs: building.heardAtMs,
  };
}
