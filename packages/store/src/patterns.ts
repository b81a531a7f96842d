import type { Patterns } from "@slipway/engine";
import { toRow } from "./schema/codec.ts";
import type { Queries } from "./schema/queries.ts";
import { patternRow } from "./schema/rows.ts";

export function createPatterns(queries: Queries): Patterns {
  return {
    async learn(pattern) {
      const { project, signature, ...learnt } = toRow(patternRow, pattern);
      await queries
        .insertInto("patterns")
        .values({ project, signature, ...learnt })
        .onConflict((conflict) => conflict.columns(["project", "signature"]).doUpdateSet(learnt))
        .execute();
    },
    async find(project, signatures) {
      const rows = await queries
        .selectFrom("patterns")
        .selectAll()
        .where("project", "=", project)
        .where("signature", "in", [...signatures])
        .orderBy("signature")
        .execute();
      return rows.map((row) => patternRow.parse(row));
    },
  };
}
