import { type BuildId, SlipwayError } from "@slipway/contract";
import type { BuildRecord, StoredBuild } from "@slipway/engine";
import { toRecords } from "./records.ts";
import type { Queries, Trx } from "./schema/queries.ts";
import { buildRow } from "./schema/rows.ts";

/** Reads everything that the port promises of each kind. The limit of a page does not apply. */
export async function readState(trx: Trx, id: BuildId): Promise<StoredBuild> {
  const build = await requireBuild(trx, id);
  const tasks = await trx.selectFrom("tasks").selectAll().where("build", "=", id).orderBy("id").execute();
  return {
    build,
    tasks: toRecords("tasks", tasks),
    attempts: await readOpen(trx, id, "attempts"),
    sandboxes: await readOpen(trx, id, "sandboxes"),
    candidates: await readOpen(trx, id, "candidates"),
    checkpoints: await readLastCheckpoints(trx, id),
  };
}

export async function requireBuild(queries: Queries | Trx, build: BuildId): Promise<BuildRecord> {
  const row = await queries.selectFrom("builds").selectAll().where("id", "=", build).executeTakeFirst();
  if (row === undefined) throw new SlipwayError("build_not_found", `there is no build ${build}`);
  return buildRow.parse(row);
}

async function readOpen<K extends "attempts" | "sandboxes" | "candidates">(trx: Trx, build: BuildId, kind: K) {
  // The named columns are the same in each of these tables.
  const rows = trx
    .selectFrom(kind as "attempts")
    .selectAll()
    .where("build", "=", build);
  return toRecords(kind, await rows.where("endedAt", "is", null).orderBy("id").execute());
}

async function readLastCheckpoints(trx: Trx, build: BuildId) {
  const rows = await trx
    .selectFrom("attempts")
    .innerJoin("checkpoints", (join) =>
      join
        .onRef("checkpoints.build", "=", "attempts.build")
        .on("checkpoints.id", "=", (query) =>
          query
            .selectFrom("checkpoints as last")
            .select("last.id")
            .whereRef("last.build", "=", "attempts.build")
            .whereRef("last.attempt", "=", "attempts.id")
            .orderBy("last.createdAt", "desc")
            .orderBy("last.id", "desc")
            .limit(1),
        ),
    )
    .selectAll("checkpoints")
    .where("attempts.build", "=", build)
    .where("attempts.endedAt", "is", null)
    .execute();
  return toRecords("checkpoints", rows);
}
