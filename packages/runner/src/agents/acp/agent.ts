import type { OpenOptions } from "../driver.ts";
import type { ProgramSource } from "../program/find.ts";

/** An agent that speaks the Agent Client Protocol on its standard input and output. */
export interface AcpAgent {
  readonly name: string;
  readonly program: ProgramSource;
  /** How to start it so that it finds its models at the gateway and nowhere else. */
  launch(options: OpenOptions, place: AcpPlace): AcpLaunch;
}

export interface AcpPlace {
  /** The path of the program. */
  readonly file: string;
  readonly home: string;
}

export interface AcpLaunch {
  readonly argv: readonly [string, ...string[]];
  readonly env: Readonly<Record<string, string>>;
  /** Files to put into its home directory, by path. */
  readonly files: Readonly<Record<string, string>>;
  /** Goes before the first prompt of each conversation. */
  readonly preface?: string;
}
