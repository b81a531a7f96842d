import { afterAll, beforeAll } from "vitest";
import { describeStore } from "./conformance/suite.ts";
import { startTurso, type TestTurso } from "./testing/turso.ts";

let turso: TestTurso;
beforeAll(async () => {
  turso = await startTurso();
});
afterAll(() => turso?.[Symbol.asyncDispose]());

describeStore("a stand-in for Turso", { createDatabase: () => turso.createDatabase(), seesDeath: false });
