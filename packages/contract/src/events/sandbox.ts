import type { SandboxId, SnapshotId } from "../base/ids.ts";
import type { SandboxState, StateReason } from "../sandboxes/sandbox.ts";

/** What happens to sandboxes. `sequence` rises by one per event of a provider's state directory or account. */
export type SandboxEvent = { readonly sequence: number; readonly at: number; readonly sandbox: SandboxId } & (
  | {
      readonly type: "sandbox.state_changed";
      readonly from: SandboxState | null;
      readonly to: SandboxState;
      readonly reason: StateReason;
    }
  | { readonly type: "sandbox.expiring"; readonly expiresAt: number; readonly reason: "expired" | "slept_out" }
  | { readonly type: "sandbox.destroyed"; readonly reason: StateReason }
  | { readonly type: "sandbox.adopted" }
  | { readonly type: "sandbox.out_of_memory"; readonly kills: number }
  | { readonly type: "snapshot.created"; readonly snapshot: SnapshotId; readonly checkpoint: boolean }
  | { readonly type: "snapshot.failed"; readonly message: string }
  | {
      readonly type: "egress.refused";
      readonly host: string;
      readonly port: number;
      readonly rule: EgressRefusal;
      readonly count: number;
    }
);

export type EgressRefusal = "not_allowed" | "private_address" | "port" | "unresolved" | "malformed";
