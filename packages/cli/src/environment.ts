import { homedir } from "node:os";
import { join } from "node:path";
import process from "node:process";

export type Environment = Readonly<Record<string, string | undefined>>;

/** The only place where the program reads process.env. */
export function processEnvironment(): Environment {
  return process.env;
}

/** Private to the user: compiled code that others could write would run with this user's rights. */
export function compileCacheDirectory(environment: Environment): string {
  return join(environment.XDG_CACHE_HOME || join(homedir(), ".cache"), "slipway", "compiled");
}
