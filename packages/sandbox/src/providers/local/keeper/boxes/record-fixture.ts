import * as kept from "../../../../keeper/record-fixture.ts";
import type { SandboxRecord } from "../../record.ts";

/** The record of a sandbox that was stopped, and what is different about it. */
export function recordFixture(changes: Partial<SandboxRecord> = {}): SandboxRecord {
  return {
    ...kept.recordFixture(),
    image: { kind: "host", layers: [] },
    lowers: [],
    process: null,
    cgroups: [],
    incremental: null,
    previews: {},
    ...changes,
  };
}
