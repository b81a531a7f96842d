import type { AgentActions } from "@slipway/engine";
import { toRow } from "./schema/codec.ts";
import { pageOf, type Queries } from "./schema/queries.ts";
import { agentActionRow } from "./schema/rows.ts";

export function createActions(queries: Queries): AgentActions {
  return {
    async record(actions) {
      if (actions.length === 0) return;
      const rows = actions.map((action) => toRow(agentActionRow, action));
      await queries
        .insertInto("agentActions")
        .values(rows)
        .onConflict((conflict) => conflict.doNothing())
        .execute();
    },
    async list(build, page) {
      const { offset, limit } = pageOf(page);
      const actions = queries.selectFrom("agentActions").selectAll().where("build", "=", build);
      const rows = await actions.orderBy("run").orderBy("sequence").limit(limit).offset(offset).execute();
      return rows.map((row) => agentActionRow.parse(row));
    },
  };
}
