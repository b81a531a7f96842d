import { type BuildId, SlipwayError } from "@slipway/contract";
import type { LeaseHolder, Leases } from "@slipway/engine";
import type { Expression } from "kysely";
import type { Queries, Trx } from "./schema/queries.ts";

/** The time that leases go by, within a query. */
export type LeaseTime = () => Expression<number>;

export function createLeases(queries: Queries, now: LeaseTime): Leases {
  return {
    async take(build, { holder, generation }, leaseMs, bell = null) {
      const taken = await queries
        .updateTable("leases")
        .set(({ eb }) => ({ holder, generation, leaseMs, expiresAt: eb(now(), "+", leaseMs), bell }))
        .where("build", "=", build)
        .where((is) =>
          is.or([
            is("generation", "<", generation),
            is.and([
              is("generation", "=", generation),
              is.or([is("holder", "=", holder), is("expiresAt", "<=", now())]),
            ]),
          ]),
        )
        .executeTakeFirst();
      if (taken.numUpdatedRows > 0n) return { holder, generation, leftMs: leaseMs, bell };
      await requireLease(queries, build);
      return undefined;
    },
    async find(build) {
      const row = await queries
        .selectFrom("leases")
        .select(({ eb }) => ["holder", "generation", "bell", eb("expiresAt", "-", now()).as("leftMs")])
        .where("build", "=", build)
        .executeTakeFirst();
      return row ?? missing(build);
    },
    async expired({ holder, limit = 100 } = {}) {
      const rows = await queries
        .selectFrom("leases")
        .innerJoin("builds", "builds.id", "leases.build")
        .select("leases.build")
        .where((is) => is.or([is("leases.expiresAt", "<=", now()), is("leases.holder", "=", holder ?? "")]))
        .where((is) => is.or([is("builds.endedAt", "is", null), is("leases.holder", "is not", null)]))
        .orderBy("leases.expiresAt")
        .limit(limit)
        .execute();
      return rows.map(({ build }) => build as BuildId);
    },
    async unheard(holder, limit = 100) {
      const rows = await queries
        .selectFrom("leases")
        .innerJoin("builds", "builds.id", "leases.build")
        .select("leases.build")
        .where("leases.holder", "=", holder)
        .where(({ exists, selectFrom }) =>
          exists(
            selectFrom("events")
              .select("events.sequence")
              .whereRef("events.build", "=", "builds.id")
              .whereRef("events.sequence", ">", "builds.appliedThrough")
              .where("events.source", "=", "report"),
          ),
        )
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

/** Holds and renews the lease until the transaction ends. Whoever wants to take it waits for that. */
export async function holdLease(trx: Trx, build: BuildId, by: LeaseHolder, now: Expression<number>): Promise<void> {
  const held = await trx
    .updateTable("leases")
    .set(({ eb }) => ({ expiresAt: eb(now, "+", eb.ref("leaseMs")) }))
    .where("build", "=", build)
    .where("holder", "=", by.holder)
    .where("generation", "=", by.generation)
    .executeTakeFirst();
  if (held.numUpdatedRows === 0n) await loseLease(trx, build, by);
}

/** Keeps others from taking the lease until the transaction ends. `by` may have released it. */
export async function requireLastDriver(trx: Trx, build: BuildId, by: LeaseHolder): Promise<void> {
  const held = await trx
    .updateTable("leases")
    .set({ generation: by.generation })
    .where("build", "=", build)
    .where("generation", "=", by.generation)
    .where((is) => is.or([is("holder", "=", by.holder), is("holder", "is", null)]))
    .executeTakeFirst();
  if (held.numUpdatedRows === 0n) await loseLease(trx, build, by);
}

async function loseLease(trx: Trx, build: BuildId, { holder, generation }: LeaseHolder): Promise<never> {
  const lease = await requireLease(trx, build);
  const who = lease.holder === null ? "nobody" : `${lease.holder} in generation ${lease.generation}`;
  throw new SlipwayError("lease_lost", `${who} drives ${build}, not ${holder} in generation ${generation}`);
}

async function requireLease(queries: Queries | Trx, build: BuildId) {
  const row = await queries.selectFrom("leases").selectAll().where("build", "=", build).executeTakeFirst();
  return row ?? missing(build);
}

function missing(build: BuildId): never {
  throw new SlipwayError("build_not_found", `there is no build ${build}`);
}
