import type { Duplex } from "node:stream";
import type { SandboxFiles } from "../../provider.ts";

/** A program of the simulated provider: it plays what a real one would do and answers its exit code (none: 0). */
export type SimulatedProgram = (process: SimulatedProcess) => Promise<number | undefined>;

/**
 * What a program sees. When its process has ended, by a signal for instance, every call here fails and nothing it
 * still does has an effect; while its sandbox sleeps, every call waits.
 */
export interface SimulatedProcess {
  readonly argv: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  readonly cwd: string;
  readonly user: "agent" | "root";
  /** Ends when the caller ends it; empty unless the exec keeps it open. */
  readonly stdin: AsyncIterable<Uint8Array>;
  readonly stdout: SimulatedOutput;
  readonly stderr: SimulatedOutput;
  readonly files: SandboxFiles;
  /** Aborted when the process ends. */
  readonly signal: AbortSignal;
  readonly clock: { now(): number; sleep(ms: number): Promise<void> };
  /** Takes a signal instead of ending by it. SIGKILL can not be taken. */
  trap(name: NodeJS.Signals, handler: () => void): void;
  exit(code: number): never;
  /** Starts a child in the same tree; it goes on when this process ends, as a daemon does. */
  fork(program: SimulatedProgram): void;
  /** Takes connections to a port until the process ends. */
  listen(port: number, handler: (connection: Duplex) => void): void;
  /** Connects to a unix socket: the host channel's. Fails with `connection_refused` while nobody listens. */
  dial(path: string): Promise<Duplex>;
  /** Asks the network policy. Answers the headers that the egress adds, or null and records the refusal. */
  egress(host: string, port: number): Readonly<Record<string, string>> | null;
  /** Ends this process as the memory limit does. */
  outOfMemory(): never;
}

export interface SimulatedOutput {
  /** Resolves when the bytes are in the log and no reader is too far behind. The bytes are kept, not copied. */
  write(data: Uint8Array | string): Promise<void>;
}
