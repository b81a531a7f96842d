import { createSandboxSchema, newId } from "@slipway/contract";
import { newRecord, type SandboxRecord } from "./record.ts";

/** The record of a sandbox that was stopped, and what is different about it. */
export function recordFixture(changes: Partial<SandboxRecord> = {}): SandboxRecord {
  const stopped = { state: "stopped", wasRunning: true, expiresAt: 1000, endsBy: 2000 } as const;
  return {
    ...newRecord({ id: newId("sbx"), request: createSandboxSchema.parse({}), tools: [] }, 0),
    ...stopped,
    ...changes,
  };
}
