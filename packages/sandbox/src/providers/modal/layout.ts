import { randomBytes } from "node:crypto";
import { chmodSync, mkdirSync, readFileSync } from "node:fs";
import { dirname, isAbsolute, join } from "node:path";
import { SlipwayError } from "@slipway/contract";
import { keeperLayout } from "../../keeper/layout.ts";
import { replaceFile } from "../../state-files.ts";

/** The provider's own part of a state directory: a local provider may use the same one. */
export type Layout = ReturnType<typeof layoutOf>;

export function layoutOf(stateDir: string) {
  const root = join(stateDir, "modal");
  return {
    ...keeperLayout(root),
    /** Whose sandboxes these are, on an account that several state directories may use. */
    owner: join(root, "owner"),
    imageRecord: (key: string) => join(root, "records", "images", `${key}.json`),
  };
}

const mostSocketPath = 107;

/** Creates what is missing. */
export function prepareStateDirectory(layout: Layout): void {
  if (!isAbsolute(layout.root) || layout.keeperSocket.length > mostSocketPath) {
    const most = mostSocketPath - "/modal/keeper.sock".length;
    throw new SlipwayError(
      "invalid_settings",
      `The state directory must be an absolute path of at most ${most} characters: ${layout.root}`,
    );
  }
  try {
    // As the local provider makes it, whose sandboxes pass through it: the next program may use that one.
    ensure(dirname(layout.root), process.getuid?.() === 0 ? 0o711 : 0o700);
    for (const directory of [layout.root, layout.tools, ...Object.values(layout.records)]) ensure(directory);
  } catch (cause) {
    const message = `Cannot use the state directory ${layout.root}: ${(cause as Error).message}`;
    throw new SlipwayError("invalid_settings", message, { cause });
  }
}

function ensure(directory: string, mode = 0o700): void {
  if (mkdirSync(directory, { recursive: true, mode }) !== undefined) chmodSync(directory, mode);
}

/** Only the keeper calls this. */
export function readOwner(layout: Layout): string {
  try {
    const owner = readFileSync(layout.owner, "utf8");
    if (/^[0-9a-f]{32}$/.test(owner)) return owner;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ENOENT") throw error;
  }
  const owner = randomBytes(16).toString("hex");
  replaceFile(layout.owner, owner, 0o600);
  return owner;
}
