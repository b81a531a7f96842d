import { bridgeLimits } from "@slipway/contract";
import { sql } from "kysely";
import { expect, test } from "vitest";
import { openDatabase } from "../../database/open.ts";
import { startPostgres } from "../../testing/postgres.ts";
import { newBuild, progress } from "../conformance/subject.ts";
import { openBridge } from "../open.ts";
import { createTestDatabases } from "../testing/database.ts";

test.each(["sqlite", "postgres"])(
  "a build that has said all it may is told so on %s, and keeps its log",
  async (kind) => {
    await using parts = new AsyncDisposableStack();
    const database =
      kind === "sqlite"
        ? parts.use(createTestDatabases()).open()
        : parts.use(openDatabase({ url: await parts.use(await startPostgres()).createDatabase() }));
    const bridge = parts.adopt(await openBridge({ database, clock: Date }), (one) => one.close());
    const build = newBuild();
    await bridge.publish(build, progress("first"));
    const most = bridgeLimits.maxMessagesPerBuild;
    await sql`update bridge_logs set last_offset = ${most - 1}`.execute(database.queries);
    expect(await bridge.publish(build, progress("last"))).toEqual({ offset: most });
    await expect(bridge.publish(build, progress("too-many"))).rejects.toMatchObject({ code: "too_large" });
    expect(await bridge.read(build, { after: most - 1 })).toMatchObject({ messages: [{ key: "last" }], next: most });
  },
);
