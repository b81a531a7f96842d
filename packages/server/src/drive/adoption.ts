import type { BuildId } from "@slipway/contract";
import { maxPage, type Store, type Tick, type Work } from "@slipway/engine";
import type { Drive } from "./drive.ts";

export interface AdoptionParts {
  readonly store: Store;
  readonly work: Pick<Work, "canCarryOn">;
  readonly tick: Pick<Tick, "forget">;
  readonly drive: Pick<Drive, "drive">;
  /** Of this server. It holds the leases. */
  readonly name: string;
  readonly leaseMs: number;
  readonly clock: { now(): number };
  readonly driven: Driven;
  readonly onDrive?: ((build: BuildId, generation: number) => void) | undefined;
  readonly warn: (message: string) => void;
}

/** The builds that this server drives: in which generation, and when they had their last turn here. */
export type Driven = Map<BuildId, { readonly generation: number; readonly turnAtMs: number }>;

/** Takes builds that nobody drives. The function it returns answers once the build is driven, by this server or another. */
export function createAdoption(parts: AdoptionParts): (build: BuildId) => Promise<void> {
  const canCarryOn = createCarryOnCheck(parts);
  /** Under way: a bell and a sweep may find the same build free. */
  const adopting = new Map<BuildId, Promise<void>>();
  return (build) => {
    const begin = async () => {
      if (await canCarryOn(build)) await take(parts, build);
    };
    const begun = adopting.get(build) ?? begin().finally(() => adopting.delete(build));
    adopting.set(build, begun);
    return begun;
  };
}

/** Drives the build in the next generation, which fences off whatever drove it before. */
async function take(parts: AdoptionParts, build: BuildId): Promise<void> {
  const { store, tick, drive, name, leaseMs, clock, driven } = parts;
  const { holder, generation, leftMs } = await store.leases.find(build);
  const isOwn = holder === name && driven.get(build)?.generation === generation;
  const isAnothers = holder !== null && holder !== name;
  // Whoever else found it free was sooner, or its driver has come back.
  if (leftMs > 0 && (isOwn || isAnothers)) return;
  // While the lease still names the holder: a server that dies here leaves this to the next one.
  if (isAnothers) await store.ledger.abandon(holder, build);
  const by = { holder: name, generation: generation + 1 };
  if ((await store.leases.take(build, by, leaseMs)) === undefined) return;
  driven.set(build, { generation: by.generation, turnAtMs: clock.now() });
  parts.onDrive?.(build, by.generation);
  tick.forget(build);
  try {
    await drive.drive(build, by.generation);
  } catch (error) {
    driven.delete(build);
    await store.leases.release(build, by);
    throw error;
  }
}

/** Whether the build's work is here. Warns once for each build whose work is not. */
function createCarryOnCheck({ store, work, warn }: AdoptionParts): (build: BuildId) => Promise<boolean> {
  const leftAlone = new Set<BuildId>();
  return async (build) => {
    const isHere = (await work.canCarryOn?.(build)) ?? true;
    if (isHere) leftAlone.delete(build);
    else if (await isCancelled(store, build)) return true;
    else if (!leftAlone.has(build)) {
      leftAlone.add(build);
      const advice = "Start the server that has it, or cancel the build if there is none any more.";
      warn(`${build} is not driven from here: its work is not in this state directory. ${advice}`);
    }
    return isHere;
  };
}

/** A cancelled build can be ended without its work. */
async function isCancelled(store: Store, build: BuildId): Promise<boolean> {
  const { status, appliedThrough } = await store.builds.get(build);
  const told = await store.events.read(build, appliedThrough, { source: "report", limit: maxPage });
  return status === "cancelled" || told.some(({ type }) => type === "order.cancel");
}
