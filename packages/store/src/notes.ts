import type { WorkNotes } from "@slipway/engine";
import { requireLastDriver } from "./leases.ts";
import { toRow } from "./schema/codec.ts";
import type { Queries } from "./schema/queries.ts";
import { noteRow } from "./schema/rows.ts";

export function createNotes(queries: Queries): WorkNotes {
  return {
    async list(build, kind) {
      const notes = queries.selectFrom("workNotes").selectAll().where("build", "=", build).where("kind", "=", kind);
      return (await notes.orderBy("name").execute()).map((row) => noteRow.parse(row));
    },
    write: (build, by, notes) =>
      queries.transaction().execute(async (trx) => {
        await requireLastDriver(trx, build, by);
        for (const change of notes) {
          const { kind, name, note } = toRow(noteRow, { build, ...change });
          if (change.note === null) {
            const own = trx.deleteFrom("workNotes").where("build", "=", build).where("kind", "=", kind);
            await own.where("name", "=", name).execute();
            continue;
          }
          await trx
            .insertInto("workNotes")
            .values({ build, kind, name, note })
            .onConflict((conflict) => conflict.columns(["build", "kind", "name"]).doUpdateSet({ note }))
            .execute();
        }
      }),
  };
}
