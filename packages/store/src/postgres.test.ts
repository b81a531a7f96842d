import { afterAll, beforeAll } from "vitest";
import { describeStore } from "./conformance/suite.ts";
import { startPostgres, type TestPostgres } from "./testing/postgres.ts";

let postgres: TestPostgres;
beforeAll(async () => {
  postgres = await startPostgres();
});
afterAll(() => postgres?.[Symbol.asyncDispose]());

describeStore("Postgres", { createDatabase: () => postgres.createDatabase() });
