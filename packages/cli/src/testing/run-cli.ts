import { PassThrough, Writable } from "node:stream";
import type { Client } from "@slipway/client";
import type { SandboxProvider } from "@slipway/sandbox";
import type { ProviderName } from "@slipway/sandbox/settings";
import type { HostFinding } from "../input/command.ts";
import { runProgram } from "../program.ts";
import type { Environment } from "../terminal/environment.ts";
import type { InputStream, Io, OutputStream } from "../terminal/io.ts";

export interface CliOptions {
  readonly provider?: SandboxProvider;
  readonly findings?: Partial<Record<ProviderName, readonly HostFinding[]>>;
  readonly server?: Client;
  readonly stdin?: string | Uint8Array;
  readonly env?: Environment;
  /** Standard output and error are terminals. */
  readonly terminal?: boolean;
  /** Called with each write to standard output; what it throws is the write's failure. */
  readonly onStdout?: (data: Buffer) => void;
}

export interface CliRun {
  readonly code: number;
  readonly stdout: string;
  readonly stdoutBytes: Buffer;
  readonly stderr: string;
}

export interface RunningCli {
  readonly ended: Promise<CliRun>;
  readonly stdin: PassThrough & InputStream;
  readonly stdout: OutputStream;
  /** What is on standard error so far. */
  readonly stderr: { text(): string };
  /** Every change of the raw mode, in order. */
  readonly rawModes: readonly boolean[];
  signal(name: NodeJS.Signals): void;
}

/** Runs a command line inside this process. */
export function startCli(argv: readonly string[], options: CliOptions = {}): RunningCli {
  const [out, err] = [sink(options.onStdout), sink()];
  const rawModes: boolean[] = [];
  const terminal = options.terminal === true;
  const stdin = Object.assign(new PassThrough(), { isTTY: terminal, setRawMode: (raw: boolean) => rawModes.push(raw) });
  if (options.stdin !== undefined) stdin.end(options.stdin);
  const stdout = Object.assign(out.stream, { isTTY: terminal, columns: 100, rows: 30 });
  const listeners = new Map<string, Set<() => void>>();
  const io: Io = {
    stdin,
    stdout,
    stderr: Object.assign(err.stream, { isTTY: terminal, columns: 100, rows: 30 }),
    env: options.env ?? {},
    onSignal(name, listener) {
      const set = listeners.get(name) ?? new Set();
      listeners.set(name, set.add(listener));
      return () => set.delete(listener);
    },
  };
  const ended = runProgram(argv, io, {
    openProvider: async () => options.provider ?? Promise.reject(new Error("this test has no provider")),
    inspectProvider: async (name) => options.findings?.[name] ?? [],
    connectServer: async () => options.server ?? Promise.reject(new Error("this test has no server")),
    serverHealth: async () => await options.server?.server.health(),
  }).then((code) => ({ code, stdout: out.text(), stdoutBytes: out.bytes(), stderr: err.text() }));
  return {
    ended,
    stdin,
    stdout,
    stderr: err,
    rawModes,
    signal: (name) => [...(listeners.get(name) ?? [])].forEach((listener) => void listener()),
  };
}

export function runCli(argv: readonly string[], options?: CliOptions): Promise<CliRun> {
  return startCli(argv, options).ended;
}

function sink(onWrite?: (data: Buffer) => void) {
  const chunks: Buffer[] = [];
  const stream = new Writable({
    write(data: Buffer, _encoding, done) {
      try {
        onWrite?.(data);
        chunks.push(data);
        done();
      } catch (error) {
        done(error as Error);
      }
    },
  });
  return { stream, bytes: () => Buffer.concat(chunks), text: () => Buffer.concat(chunks).toString() };
}
