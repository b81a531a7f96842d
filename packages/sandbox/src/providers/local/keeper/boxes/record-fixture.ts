import { createSandboxSchema, newId } from "@slipway/contract";
import type { SandboxRecord } from "../../record.ts";

/** The record of a sandbox that was stopped, and what is different about it. */
export function recordFixture(changes: Partial<SandboxRecord> = {}): SandboxRecord {
  const request = createSandboxSchema.parse({});
  return {
    id: newId("sbx"),
    request,
    network: request.network,
    state: "stopped",
    reason: "requested",
    createdAt: 0,
    stateChangedAt: 0,
    wasRunning: true,
    expiresAt: 1000,
    endsBy: 2000,
    image: { kind: "host", layers: [] },
    lowers: [],
    process: null,
    cgroups: [],
    incremental: null,
    tools: [],
    owedSnapshot: null,
    previews: {},
    ...changes,
  };
}
