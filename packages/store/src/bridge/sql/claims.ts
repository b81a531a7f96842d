import {
  type BuildId,
  bridgeLimits,
  type Claim,
  claimRequestSchema,
  compareIds,
  SlipwayError,
} from "@slipway/contract";
import type { Claims } from "@slipway/engine";
import type { Kysely, Transaction } from "kysely";
import { parseInput, releaseSchema, renewSchema } from "../input.ts";
import type { BridgeTables } from "./tables.ts";

const columns = ["path", "owner", "token", "expiresAt"] as const;

export function createSqlClaims(queries: Kysely<BridgeTables>, now: () => number): Claims {
  return {
    async claim(build, request) {
      const { paths, owner, leaseMs } = parseInput(claimRequestSchema, request);
      const wanted = [...new Set(paths)];
      return await queries.transaction().execute(async (trx) => {
        const claimedPaths = await lockClaims(trx, build);
        const known = await trx
          .selectFrom("bridgeClaims")
          .select(columns)
          .where("build", "=", build)
          .where("path", "in", wanted)
          .execute();
        const held = known.filter((claim) => claim.expiresAt > now() && claim.owner !== owner);
        if (held.length > 0) return { granted: false, held: byPath(held) };
        await countPaths(trx, build, claimedPaths + wanted.length - known.length);
        const claims = await grant(trx, build, wanted, { owner, expiresAt: now() + leaseMs });
        return { granted: true, claims: byPath(claims) };
      });
    },
    async renew(build, held) {
      const { path, token, leaseMs } = parseInput(renewSchema, held);
      return await whereHeld(queries, build, path, token, now())
        .set({ expiresAt: now() + leaseMs })
        .returning(columns)
        .executeTakeFirst();
    },
    async release(build, held) {
      const { path, token } = parseInput(releaseSchema, held);
      const { numUpdatedRows } = await whereHeld(queries, build, path, token, now())
        .set({ expiresAt: 0 })
        .executeTakeFirstOrThrow();
      return numUpdatedRows === 1n;
    },
    async claims(build) {
      const query = queries.selectFrom("bridgeClaims").select(columns).where("build", "=", build);
      return byPath(await query.where("expiresAt", ">", now()).execute());
    },
  };
}

function whereHeld(queries: Kysely<BridgeTables>, build: BuildId, path: string, token: number, nowMs: number) {
  return queries
    .updateTable("bridgeClaims")
    .where("build", "=", build)
    .where("path", "=", path)
    .where("token", "=", token)
    .where("expiresAt", ">", nowMs);
}

/** An unclaimed path has no row to lock, so claimants take turns at the build's row. */
async function lockClaims(trx: Transaction<BridgeTables>, build: BuildId): Promise<number> {
  const { claimedPaths } = await trx
    .insertInto("bridgeLogs")
    .values({ build, lastOffset: 0, claimedPaths: 0 })
    .onConflict((conflict) => conflict.column("build").doUpdateSet({ build }))
    .returning("claimedPaths")
    .executeTakeFirstOrThrow();
  return claimedPaths;
}

async function countPaths(trx: Transaction<BridgeTables>, build: BuildId, claimedPaths: number): Promise<void> {
  if (claimedPaths > bridgeLimits.maxClaimedPaths) {
    throw new SlipwayError("too_large", `${build} would have claimed more than ${bridgeLimits.maxClaimedPaths} paths`);
  }
  await trx.updateTable("bridgeLogs").set({ claimedPaths }).where("build", "=", build).execute();
}

async function grant(
  trx: Transaction<BridgeTables>,
  build: BuildId,
  paths: readonly string[],
  { owner, expiresAt }: Pick<Claim, "owner" | "expiresAt">,
): Promise<Claim[]> {
  return await trx
    .insertInto("bridgeClaims")
    .values(paths.map((path) => ({ build, path, owner, token: 1, expiresAt })))
    .onConflict((conflict) =>
      conflict
        .columns(["build", "path"])
        .doUpdateSet(({ eb, ref }) => ({ owner, expiresAt, token: eb(ref("bridgeClaims.token"), "+", 1) })),
    )
    .returning(columns)
    .execute();
}

function byPath(claims: readonly Claim[]): readonly Claim[] {
  return claims.toSorted((a, b) => compareIds(a.path, b.path));
}
