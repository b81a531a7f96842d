import type { OpenOptions } from "../driver.ts";
import type { ProgramSource } from "../program/find.ts";

/** An agent that speaks the Agent Client Protocol over its standard input and output. */
export interface AcpAgent {
  readonly name: string;
  readonly program: ProgramSource;
  /** How it is started so that it finds its models at the gateway and nowhere else. */
  launch(options: OpenOptions, place: AcpPlace): AcpLaunch;
}

export interface AcpPlace {
  /** The program. */
  readonly file: string;
  readonly home: string;
}

export interface AcpLaunch {
  readonly argv: readonly [string, ...string[]];
  readonly env: Readonly<Record<string, string>>;
  /** What it is to find in its home directory, by path. */
  readonly files: Readonly<Record<string, string>>;
  /** What comes before the first words of each conversation. */
  readonly preface?: string;
}
