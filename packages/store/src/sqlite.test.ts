import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll } from "vitest";
import { describeStore } from "./conformance/suite.ts";

let directory: string;
let databases = 0;
beforeAll(() => {
  directory = mkdtempSync(join(tmpdir(), "slipway-store-"));
});
afterAll(() => rmSync(directory, { recursive: true }));

describeStore("SQLite", { createDatabase: async () => `file:${join(directory, `${++databases}.db`)}` });
