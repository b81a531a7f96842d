import type { CreateSandboxInput, SnapshotId } from "@slipway/contract";
import type { Sandbox } from "@slipway/sandbox";

/** One sandbox of whatever runs them. */
export type Box = Pick<Sandbox, "exec" | "files" | "connect" | "snapshot" | "setNetwork" | "destroy">;

/** What runs the sandboxes: the local provider, or nothing at all when only their number matters. */
export interface Boxes extends AsyncDisposable {
  /** False: they run no commands, and stay until they are ended. */
  readonly hasProcesses: boolean;
  create(request: BoxRequest): Promise<Box>;
  deleteSnapshot(id: SnapshotId): Promise<void>;
}

export interface BoxRequest {
  /** Null: the machine's own root, unchanged. */
  readonly snapshot: SnapshotId | null;
  readonly environment: Readonly<Record<string, string>>;
  readonly cpu?: number | undefined;
  readonly memoryMb?: number | undefined;
  readonly ports: readonly number[];
  readonly network: CreateSandboxInput["network"];
  /** How long it may stay at most. The stand-in ends it earlier, unless it was killed itself. */
  readonly lifetimeMs: number;
}

/** For work of the stand-in's own, such as an image's build. */
export const workLifetimeMs = 60 * 60_000;
