import type { BuildId } from "@slipway/contract";
import { maxPage, type Store, type Tick, type Work } from "@slipway/engine";
import type { Drive } from "./drive.ts";

interface AdoptionParts {
  readonly store: Store;
  readonly work: Pick<Work, "canCarryOn">;
  readonly name: string;
  readonly clock: { now(): number };
  readonly onDrive?: ((build: BuildId, generation: number) => void) | undefined;
  readonly warn: (message: string) => void;
  readonly tick: Pick<Tick, "forget">;
  readonly drive: Pick<Drive, "drive">;
  readonly leaseMs: number;
  readonly driven: Driven;
}

/** The builds that this server drives: the generation, and the time of the last turn here. */
export type Driven = Map<BuildId, { readonly generation: number; readonly turnAtMs: number }>;

/** Takes over a build that nobody drives. Resolves once this or another server drives it. */
export function createAdoption(parts: AdoptionParts): (build: BuildId) => Promise<void> {
  const canCarryOn = createCarryOnCheck(parts);
  /** Adoptions in progress: a bell and a sweep may find the same build free. */
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

/** Drives the build in the next generation, which fences off its earlier drivers. */
async function take(parts: AdoptionParts, build: BuildId): Promise<void> {
  const { store, tick, drive, name, leaseMs, clock, driven } = parts;
  const { holder, generation, leftMs } = await store.leases.find(build);
  const isOwn = holder === name && driven.get(build)?.generation === generation;
  const isAnothers = holder !== null && holder !== name;
  // Another server was faster, or its driver has come back.
  if (leftMs > 0 && (isOwn || isAnothers)) return;
  // While the lease still names its holder, so that the next server does this if this one dies here.
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

/** Whether the build's work is in this state directory. Warns once for each build whose work is not. */
function createCarryOnCheck({ store, work, warn }: AdoptionParts): (build: BuildId) => Promise<boolean> {
  const leftAlone = new Set<BuildId>();
  return async (build) => {
    const isHere = (await work.canCarryOn?.(build)) ?? true;
    if (isHere) leftAlone.delete(build);
    else if (await isCancelled(store, build)) return true;
    else if (!leftAlone.has(build)) {
      leftAlone.add(build);
      const advice = "Start the server that has it, or cancel the build if that server is gone.";
      warn(`Cannot drive ${build} here: its work is not in this state directory. ${advice}`);
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
