import { afterAll, beforeAll, expect, test } from "vitest";
import { describeStore } from "./conformance/suite.ts";
import { describeTurns } from "./conformance/turns.ts";
import { openDatabase } from "./database/open.ts";
import { openStore } from "./store.ts";
import { startTurso, type TestTurso } from "./testing/turso.ts";

let turso: TestTurso;
beforeAll(async () => {
  turso = await startTurso();
});
afterAll(() => turso?.[Symbol.asyncDispose]());

/** All of it is in turso.long.ts: what another database shows differs here by the wire alone. */
describeStore("a stand-in for Turso", { createDatabase: () => turso.createDatabase(), seesDeath: false }, [
  describeTurns,
]);

test("an address where nobody listens is told as such", async () => {
  await using database = openDatabase({ url: "http://127.0.0.1:1/x" });
  await expect(openStore(database, { now: () => 0 })).rejects.toMatchObject({ code: "database_unavailable" });
});
