import { openDatabase } from "../../database/open.ts";
import { startTurso } from "../../testing/turso.ts";
import { describeBridge } from "../conformance/suite.ts";
import { openBridge } from "../open.ts";
import { createFakeClock } from "../testing/clock.ts";

describeBridge("the SQL bridge on a stand-in for Turso", async () => {
  const turso = await startTurso();
  const url = await turso.createDatabase();
  const databases = [openDatabase({ url }), openDatabase({ url })] as const;
  const clock = createFakeClock();
  const open = (database: (typeof databases)[number]) => openBridge({ database, clock, pollMs: 10 });
  const [bridge, other] = [await open(databases[0]), await open(databases[1])];
  return {
    bridge,
    other,
    advance: clock.advance,
    async [Symbol.asyncDispose]() {
      await bridge.close();
      await other.close();
      for (const database of databases) await database[Symbol.asyncDispose]();
      await turso[Symbol.asyncDispose]();
    },
  };
});
