import { randomBytes } from "node:crypto";
import { readFileSync, renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";

/**
 * The name that a server goes by where no setting gives it one: the same at each start, and no other server's, wherever that
 * runs. Whoever asks has the state directory to itself.
 */
export function keepServerName(stateDirectory: string): string {
  const path = join(stateDirectory, "server-name");
  const kept = readName(path);
  if (/^[0-9a-f]{16}$/.test(kept)) return kept;
  const name = randomBytes(8).toString("hex");
  const draft = `${path}.new`;
  writeFileSync(draft, name, { mode: 0o600 });
  renameSync(draft, path);
  return name;
}

function readName(path: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return "";
    throw error;
  }
}
