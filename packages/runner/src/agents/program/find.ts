import { access, constants } from "node:fs/promises";
import { delimiter, join } from "node:path";
import { SlipwayError } from "@slipway/contract";

/** What a driver needs to know of its sandbox. */
export interface Surroundings {
  /** Where agents' programs are mounted, each in its own directory. */
  readonly toolsDirectory: string;
  /** The environment of every command in the sandbox: the proxy, and the user's variables. */
  readonly environment: Readonly<Record<string, string>>;
  /** Where agents keep settings and conversations. A resumed run finds them again. */
  readonly homesDirectory: string;
}

export interface ProgramSource {
  /** Its directory below the tools directory. */
  readonly directory: string;
  /** Where the program may lie in there, in order of preference. */
  readonly files: readonly string[];
  /** Its name in PATH. */
  readonly command: string;
  /** The npm packages that contain it. None for a described agent. */
  readonly packages: readonly string[];
}

/** Returns the program's path: in its mounted directory, otherwise in PATH. */
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
