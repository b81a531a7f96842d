import { homedir } from "node:os";
import { join } from "node:path";
import process from "node:process";

export type Environment = Readonly<Record<string, string | undefined>>;

/** The only place where the program reads process.env. */
export function processEnvironment(): Environment {
  return process.env;
}

/** The directory that relative paths start from: `npm run slipway` runs in the checkout, not where it was called. */
export function startDirectory(environment: Environment): string | undefined {
  const isOwnScript = environment.npm_package_name === "slipway" && environment.npm_lifecycle_event === "slipway";
  return isOwnScript ? environment.INIT_CWD : undefined;
}

/** Private to the user: code that others could write would run with this user's rights. */
export function compileCacheDirectory(environment: Environment): string {
  return join(environment.XDG_CACHE_HOME || join(homedir(), ".cache"), "slipway", "compiled");
}
