import { mkdir, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { onTestFinished } from "vitest";

/** Directories for one run, gone after the test. */
export async function makeWorkplace(): Promise<{ readonly directory: string; readonly workdir: string }> {
  const root = await mkdtemp(join(tmpdir(), "slipway-runner-"));
  onTestFinished(() => rm(root, { recursive: true, force: true, maxRetries: 10 }));
  const [directory, workdir] = [join(root, "run"), join(root, "work")];
  await Promise.all([mkdir(directory), mkdir(workdir)]);
  return { directory, workdir };
}
