import type { Client } from "@slipway/client";
import type { Health } from "@slipway/contract";
import type { SandboxProvider } from "@slipway/sandbox";
import type { Finding } from "@slipway/sandbox/doctor";
import type { ProviderName } from "@slipway/sandbox/settings";
import type { Workspaces } from "@slipway/store/workspaces";
import type { Environment } from "../terminal/environment.ts";
import type { Io, Output } from "../terminal/io.ts";
import type { Progress } from "../terminal/progress.ts";
import type { Paint } from "../terminal/terminal.ts";
import type { Settings } from "./config.ts";

export interface OptionSpec {
  /** Placeholder in the help; an option without one is a switch. */
  readonly value?: string;
  readonly short?: string;
  /** May be given more than once. */
  readonly multiple?: boolean;
  readonly help: string;
  /** What holds without the option, for help. */
  readonly default?: string;
}

export type OptionSpecs = Readonly<Record<string, OptionSpec>>;

export interface ArgumentSpec {
  readonly name: string;
  readonly help: string;
  readonly optional?: boolean;
  /** Takes all words that follow. Only the last argument can. */
  readonly many?: boolean;
}

export interface Command {
  /** Its words, for example `sandbox image build`. */
  readonly name: string;
  readonly aliases?: readonly string[];
  readonly summary: string;
  readonly arguments?: readonly ArgumentSpec[];
  /** A program and its arguments follow the others, taken as they are. */
  readonly takesProgram?: true;
  readonly options?: OptionSpecs;
  /** Paragraphs below the options. */
  readonly notes?: readonly string[];
  readonly examples?: readonly string[];
  /** Called when the command runs, so that no other command's modules are loaded. */
  load(): Promise<{ run: Run }>;
}

export interface CommandGroup {
  readonly title: string;
  readonly commands: readonly Command[];
}

/** The parsed command line of one command. Reading an option that the command does not declare is a defect. */
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

/** Returns the exit code; nothing means 0. */
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
  /** Opens it on first use, with that call's tool directories and settings; the program closes it. */
  provider(tools?: Readonly<Record<string, string>>, settings?: Settings): Promise<SandboxProvider>;
  inspectProvider(name: ProviderName, settings: Settings): Promise<readonly HostFinding[]>;
  /** The storage that outlives sandboxes, opened on first use; the program closes it. */
  storage(): Promise<Workspaces>;
  /** The directory of the server's socket and log. */
  stateDir(): Promise<string>;
  /** Connects to the server, starting it if needed; `settings` are added to the environment. */
  server(settings?: Environment): Promise<Client>;
  /** Undefined if no server is running. */
  serverHealth(): Promise<Health | undefined>;
  /** One JSON document, or the text for people. */
  result(value: unknown, text: string | (() => string)): Promise<void>;
  /** Makes text from a sandbox harmless when the output is a terminal. */
  clean(text: string): string;
  /** A line for people on standard error; silent with --json. */
  note(line: string): Promise<void>;
}

/** One check of `doctor`. */
export type HostFinding = Omit<Finding, "action"> & Partial<Pick<Finding, "action">>;

export interface Interrupts {
  /** Aborts on an interrupt that no handler has taken. */
  readonly signal: AbortSignal;
  /** Sends interrupts to the handler until the result is disposed. */
  take(handler: (signal: "SIGINT" | "SIGTERM") => void): Disposable;
}
