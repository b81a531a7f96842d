import type { Client } from "@slipway/client";
import type { Health } from "@slipway/contract";
import type { SandboxProvider } from "@slipway/sandbox";
import type { Environment } from "../terminal/environment.ts";
import type { Io, Output } from "../terminal/io.ts";
import type { Progress } from "../terminal/progress.ts";
import type { Paint } from "../terminal/terminal.ts";
import type { Settings } from "./config.ts";

export interface OptionSpec {
  /** What the value is, for help; an option without one is a switch. */
  readonly value?: string;
  readonly short?: string;
  /** May be given more than once. */
  readonly multiple?: boolean;
  readonly help: string;
}

export type OptionSpecs = Readonly<Record<string, OptionSpec>>;

export interface ArgumentSpec {
  readonly name: string;
  readonly help: string;
  readonly optional?: boolean;
  /** Takes all that follow. Only the last argument can. */
  readonly many?: boolean;
}

export interface Command {
  /** The words that name it, for instance `sandbox image build`. */
  readonly name: string;
  readonly aliases?: readonly string[];
  readonly summary: string;
  readonly group: string;
  readonly arguments: readonly ArgumentSpec[];
  /** A program and its arguments, behind the others, taken as they are. */
  readonly program?: "required" | "optional";
  readonly options: OptionSpecs;
  /** Paragraphs below the options. */
  readonly notes?: readonly string[];
  readonly examples?: readonly string[];
  /** Loaded when the command is run: what a command does not need is never read. */
  load(): Promise<{ run: Run }>;
}

/** The parsed command line of one command. Asking for an option that the command does not declare is a defect. */
export interface Arguments {
  flag(option: string): boolean;
  text(option: string): string | undefined;
  list(option: string): readonly string[];
  integer(option: string, range: { min: number; max: number }): number | undefined;
  decimal(option: string): number | undefined;
  durationMs(option: string): number | undefined;
  /** A duration, or null for `never`. */
  durationOrNever(option: string): number | null | undefined;
  /** Arguments in the order of the command's table. */
  argument(name: string): string;
  optional(name: string): string | undefined;
  many(name: string): readonly string[];
  readonly program: readonly string[];
}

/** Answers with the exit code; nothing means 0. */
// biome-ignore lint/suspicious/noConfusingVoidType: most commands end without a code of their own
export type Run = (context: Context) => Promise<number | void>;

export interface Context {
  readonly io: Io;
  readonly args: Arguments;
  readonly json: boolean;
  readonly out: Output;
  readonly err: Output;
  readonly paint: Paint;
  readonly progress: Progress;
  readonly interrupts: Interrupts;
  settings(): Promise<Settings>;
  /** Opened at the first use, with that use's tool directories; closed by the program. */
  provider(tools?: Readonly<Record<string, string>>): Promise<SandboxProvider>;
  inspectHost(settings: Settings): Promise<readonly HostFinding[]>;
  /** Where the server's socket and log are. */
  stateDir(): Promise<string>;
  /** The server of this machine, which is started when it does not run; `settings`: beside those of the environment. */
  server(settings?: Environment): Promise<Client>;
  /** Of the server of this machine; undefined: none runs. */
  serverHealth(): Promise<Health | undefined>;
  /** One JSON document, or the text for people. */
  result(value: unknown, text: string | (() => string)): Promise<void>;
  /** Cleans text that came out of a sandbox when a terminal would read it. */
  clean(text: string): string;
  /** A line for people on standard error; none with --json. */
  note(line: string): Promise<void>;
}

/** One thing that `doctor` looked at. */
export interface HostFinding {
  readonly name: string;
  readonly status: "ok" | "warn" | "fail";
  readonly detail: string;
  readonly action?: string | null | undefined;
}

export interface Interrupts {
  /** Aborts when the user interrupts and nobody has taken the signals. */
  readonly signal: AbortSignal;
  /** Sends interrupts to the handler until it is disposed. */
  take(handler: (signal: "SIGINT" | "SIGTERM") => void): Disposable;
}
