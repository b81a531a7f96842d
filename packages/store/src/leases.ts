import { type BuildId, SlipwayError } from "@slipway/contract";
import type { LeaseHolder, Leases } from "@slipway/engine";
import type { Clock, Queries, Trx } from "./schema/queries.ts";

export function createLeases(queries: Queries, clock: Clock): Leases {
  return {
    async take(build, { holder, generation }, leaseMs, bell = null) {
      const now = clock.now();
      const taken = await queries
        .updateTable("leases")
        .set({ holder, generation, leaseMs, expiresAt: now + leaseMs, bell })
        .where("build", "=", build)
        .where((is) =>
          is.or([
            is("generation", "<", generation),
            is.and([is("generation", "=", generation), is.or([is("holder", "=", holder), is("expiresAt", "<=", now)])]),
          ]),
        )
        .executeTakeFirst();
      if (taken.numUpdatedRows > 0n) return { holder, generation, expiresAt: now + leaseMs, bell };
      await requireLease(queries, build);
      return undefined;
    },
    async find(build) {
      const { holder, generation, expiresAt, bell } = await requireLease(queries, build);
      return { holder, generation, expiresAt, bell };
    },
    async expired({ holder, limit = 100 } = {}) {
      const rows = await queries
        .selectFrom("leases")
        .innerJoin("builds", "builds.id", "leases.build")
        .select("leases.build")
        .where((is) => is.or([is("leases.expiresAt", "<=", clock.now()), is("leases.holder", "=", holder ?? "")]))
        .where((is) => is.or([is("builds.endedAt", "is", null), is("leases.holder", "is not", null)]))
        .orderBy("leases.expiresAt")
        .limit(limit)
        .execute();
      return rows.map(({ build }) => build as BuildId);
    },
    async release(build, { holder, generation }) {
      await queries
        .updateTable("leases")
        .set({ holder: null, expiresAt: 0, bell: null })
        .where("build", "=", build)
        .where("holder", "=", holder)
        .where("generation", "=", generation)
        .execute();
    },
  };
}

/** Holds and renews the lease until the transaction ends: who wants to take it waits for that. */
export async function holdLease(
  trx: Trx,
  build: BuildId,
  { holder, generation }: LeaseHolder,
  now: number,
): Promise<void> {
  const held = await trx
    .updateTable("leases")
    .set((column) => ({ expiresAt: column("leaseMs", "+", now) }))
    .where("build", "=", build)
    .where("holder", "=", holder)
    .where("generation", "=", generation)
    .executeTakeFirst();
  if (held.numUpdatedRows > 0n) return;
  const lease = await requireLease(trx, build);
  const who = lease.holder === null ? "nobody" : `${lease.holder} in generation ${lease.generation}`;
  throw new SlipwayError("lease_lost", `${who} drives ${build}, not ${holder} in generation ${generation}`);
}

async function requireLease(queries: Queries | Trx, build: BuildId) {
  const row = await queries.selectFrom("leases").selectAll().where("build", "=", build).executeTakeFirst();
  if (row === undefined) throw new SlipwayError("build_not_found", `there is no build ${build}`);
  return row;
}
