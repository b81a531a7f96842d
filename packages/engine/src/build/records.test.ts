import { buildSettingsSchema, endAs, newId } from "@slipway/contract";
import { expect, test } from "vitest";
import type { StoredBuild } from "../ports/store.ts";
import { newBuildDetails, readState } from "./records.ts";

test("records from before interruptions had reasons can be read", () => {
  const details = newBuildDetails(buildSettingsSchema.parse({}), "none", 0);
  const next = { level: null, pattern: null, from: "main" };
  const task = { estimateMs: 1, failures: [], next, interruptions: 3, notBeforeMs: 0, failure: null };
  const attempt = { ...next, number: 1, respawns: 0, pausedAtMs: null, outcome: endAs("unavailable") };
  const stored = {
    build: { id: newId("bld"), status: "running", details },
    tasks: [{ id: "cart", component: "app", dependencies: [], status: "building", attempts: 1, details: task }],
    attempts: [{ task: "cart", phase: "working", startedAt: 0, heartbeatAt: 0, details: attempt }],
  } as unknown as StoredBuild;
  const state = readState(stored);
  expect(state.tasks).toMatchObject([{ interruptions: 3, modelInterruptions: 0, trouble: null }]);
  expect(state.attempts).toMatchObject([{ outcome: { reason: "unavailable", by: "host" } }]);
});
