import { expect, test, vi } from "vitest";
import { mountsOf } from "./processes.ts";
import { openWorld } from "./world.ts";

test("mounts of a sandbox are seen while it runs, though no other process has them", async () => {
  await using world = await openWorld({ sandboxes: "local" });
  const { directory, provider } = world;
  const sandbox = await provider.create({});
  const seen = mountsOf(directory);
  expect(seen).toContainEqual(expect.stringMatching(/\/state\/mnt .* overlay /));
  expect(seen.filter((mount) => mount.startsWith(`${process.pid} `))).toEqual([]);
  await sandbox.destroy();
  await vi.waitFor(() => expect(mountsOf(directory)).toEqual([]));
});
