import { describeBridge } from "../conformance/suite.ts";
import { openBridge } from "../open.ts";
import { createFakeClock } from "../testing/clock.ts";
import { createTestDatabases } from "../testing/database.ts";

describeBridge("the SQL bridge", async () => {
  const databases = createTestDatabases();
  const clock = createFakeClock();
  const open = () => openBridge({ database: databases.open(), clock, pollMs: 10 });
  const [bridge, other] = [await open(), await open()];
  return {
    bridge,
    other,
    advance: clock.advance,
    async [Symbol.asyncDispose]() {
      await bridge.close();
      await other.close();
      await databases[Symbol.asyncDispose]();
    },
  };
});
