import { access, constants } from "node:fs/promises";
import { delimiter, join } from "node:path";
import { SlipwayError } from "@slipway/contract";

/** What a driver needs to know of the sandbox it runs in. */
export interface Surroundings {
  /** Where the programs of agents are, each in a directory of its own. */
  readonly toolsDirectory: string;
  /** What every command in the sandbox has: the way out by its proxy, what its user gave it. */
  readonly environment: Readonly<Record<string, string>>;
  /** Where agents keep what is their own: settings, conversations. A resumed run finds it again. */
  readonly homesDirectory: string;
}

export interface ProgramSource {
  /** Its directory below the tools directory. */
  readonly directory: string;
  /** Where in there the program may lie, best first. */
  readonly files: readonly string[];
  /** What it is called in PATH. */
  readonly command: string;
  /** Of npm, that bring it. None: whoever has described it knows. */
  readonly packages: readonly string[];
}

/** The program's path: from its mounted directory, else from PATH. */
export async function findProgram(source: ProgramSource, surroundings: Surroundings): Promise<string> {
  const mounted = source.files.map((file) => join(surroundings.toolsDirectory, source.directory, file));
  const inPath = (surroundings.environment["PATH"] ?? "")
    .split(delimiter)
    .map((directory) => join(directory, source.command));
  for (const candidate of [...mounted, ...inPath]) if (await isReadable(candidate)) return candidate;
  const packages = source.packages.length === 0 ? "it" : source.packages.join(" and ");
  throw new SlipwayError(
    "component_missing",
    `There is no ${source.command} in the sandbox. Install ${packages} into the agent's directory.`,
  );
}

async function isReadable(path: string): Promise<boolean> {
  return await access(path, constants.R_OK).then(
    () => true,
    () => false,
  );
}
