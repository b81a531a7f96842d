import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { newId, type RunId } from "@slipway/contract";

export interface TestPlace extends Disposable {
  readonly directory: string;
  readonly socketPath: string;
  /** The runner's own. */
  readonly spool: string;
  readonly run: RunId;
}

export function createTestPlace(): TestPlace {
  const directory = mkdtempSync(join(tmpdir(), "slipway-run-"));
  return {
    directory,
    socketPath: socketOf(directory),
    spool: join(directory, "runner"),
    run: newId("run"),
    [Symbol.dispose]: () => rmSync(directory, { recursive: true, force: true }),
  };
}

export function socketOf(directory: string): string {
  return join(directory, "run.sock");
}
