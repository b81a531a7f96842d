import type { BuildId } from "@slipway/contract";
import type { Witness } from "../attempt.ts";

export interface WorldRecord extends Witness {
  /** Counts, by task and numbers. */
  readonly starts: ReadonlyMap<string, number>;
  readonly steps: ReadonlyMap<string, number>;
  readonly spentMicroUsd: ReadonlyMap<BuildId, number>;
  readonly handovers: ReadonlyMap<string, number>;
}

export function createWorldRecord(): WorldRecord {
  const starts = new Map<string, number>();
  const steps = new Map<string, number>();
  const handovers = new Map<string, number>();
  const spentMicroUsd = new Map<BuildId, number>();
  const count = (map: Map<string, number>, key: string) => map.set(key, (map.get(key) ?? 0) + 1);
  return {
    starts,
    steps,
    spentMicroUsd,
    handovers,
    handedOver: ({ build, task, number }) => void count(handovers, `${build} ${task} ${number}`),
    started: ({ build, task, number }, respawn) => void count(starts, `${build} ${task} ${number} ${respawn}`),
    stepped: ({ build, task, number }, step) => void count(steps, `${build} ${task} ${number} ${step}`),
    spent: ({ build }, microUsd) => void spentMicroUsd.set(build, (spentMicroUsd.get(build) ?? 0) + microUsd),
  };
}
