import type { Box } from "../boxes/boxes.ts";
import { type Command, type CommandEnd, killed } from "../execs/command.ts";
import type { MountedVolumes } from "../objects/volumes.ts";
import { type Definition, type NetworkAccess, type Result, resultStatus, type Tag } from "../wire.ts";
import type { Tunnels } from "./tunnels.ts";

/** A sandbox as the stand-in knows it, from its creation to long after its end. */
export interface Sandbox {
  readonly id: string;
  readonly taskId: string;
  readonly appId: string;
  name: string;
  readonly definition: Definition;
  /** Of every command in it. */
  readonly environment: Readonly<Record<string, string>>;
  readonly workdir: string;
  tags: readonly Tag[];
  /** Seconds, no two alike: lists continue by it. */
  readonly createdAt: number;
  readonly startedAtMs: number;
  endedAtMs: number | null;
  readonly box: Box;
  readonly volumes: MountedVolumes;
  readonly tunnels: Tunnels;
  readonly main: Command | null;
  readonly execs: Map<string, Promise<Command>>;
  /** Where the output of its commands goes. */
  readonly directory: string;
  network: NetworkAccess | undefined;
  /** When anybody has last used it; for the idle time. */
  usedAtMs: number;
  /** Set when it has ended, and never again. */
  result: Result | undefined;
  readonly ended: Promise<void>;
  /** Ends it; the first result stays. Resolves when all that it held is gone. */
  end(result: Result): Promise<void>;
  /** The image of its files at its end, when it was asked for. */
  exitImage: string | null;
}

export const terminated: Result = { status: resultStatus.terminated, exitcode: 137, exception: "terminated" };
export const timedOut: Result = { status: resultStatus.timeout, exitcode: 124, exception: "timed out" };
export const idledOut: Result = { status: resultStatus.idleTimeout, exitcode: 137, exception: "idle for too long" };
export const failed: Result = {
  status: resultStatus.internalFailure,
  exitcode: 137,
  exception: "The sandbox was lost.",
};

/** A command that was ended by a signal counts as a shell would count it. */
export function resultOf({ code, signal }: CommandEnd): Result {
  const exitcode = code ?? 128 + (signal ?? killed.signal ?? 0);
  return { status: exitcode === 0 ? resultStatus.success : resultStatus.failure, exitcode };
}
