import type { SandboxId } from "@slipway/contract";
import type { Dial } from "../../agent/connection.ts";
import type { ExecLogs } from "../../agent/exec/logs.ts";
import type { Exec, HostChannel } from "../../provider.ts";
import type { SandboxRecord } from "../record.ts";

/** How a process reaches into a provider's sandboxes, past the keeper. Disposing of it closes what it has open. */
export interface Reach<R extends SandboxRecord> extends AsyncDisposable {
  /** Where the tool directories are inside. */
  readonly toolsDirectory: string;
  /** What every command's environment starts from. */
  environment(record: R): Record<string, string>;
  /** Connects to the agent of a sandbox that is awake. */
  dial(id: SandboxId): Dial;
  logs(id: SandboxId): ExecLogs;
  /** Corrects the exit of execs by what else is known of the sandbox. */
  watchExecs(current: () => Promise<R>): (exec: Exec) => Exec;
  openChannel(id: SandboxId, signal: AbortSignal | undefined): Promise<HostChannel>;
}
