import { chmod, mkdtemp, rm } from "node:fs/promises";
import { join } from "node:path";
import { openProvider } from "@slipway/sandbox/open";
import { expect, test, vi } from "vitest";
import { mountsOf } from "./processes.ts";

test("mounts of a sandbox are seen while it runs, though no other process has them", async () => {
  const directory = await mkdtemp("/var/tmp/slipway-mounts-");
  await using stack = new AsyncDisposableStack();
  stack.defer(() => rm(directory, { recursive: true, force: true, maxRetries: 10 }));
  // As root, sandboxes run as another user, who must be able to pass through.
  await chmod(directory, 0o711);
  const provider = stack.use(await openProvider({ stateDir: join(directory, "state"), environment: process.env }));
  const sandbox = await provider.create({});
  const seen = mountsOf(directory);
  expect(seen).toContainEqual(expect.stringMatching(/\/state\/mnt .* overlay /));
  expect(seen.filter((mount) => mount.startsWith(`${process.pid} `))).toEqual([]);
  await sandbox.destroy();
  await vi.waitFor(() => expect(mountsOf(directory)).toEqual([]));
});
