import { openDatabase } from "../../database/open.ts";
import { startPostgres } from "../../testing/postgres.ts";
import { describeBridge } from "../conformance/suite.ts";
import { openBridge } from "../open.ts";
import { createFakeClock } from "../testing/clock.ts";

describeBridge("the SQL bridge on Postgres", async () => {
  const postgres = await startPostgres();
  const url = await postgres.createDatabase();
  const databases = [openDatabase({ url }), openDatabase({ url })] as const;
  const clock = createFakeClock();
  const open = (database: (typeof databases)[number]) => openBridge({ database, clock, pollMs: 10 });
  const [bridge, other] = await Promise.all([open(databases[0]), open(databases[1])]);
  return {
    bridge,
    other,
    advance: clock.advance,
    async [Symbol.asyncDispose]() {
      await bridge.close();
      await other.close();
      for (const database of databases) await database[Symbol.asyncDispose]();
      await postgres[Symbol.asyncDispose]();
    },
  };
});
