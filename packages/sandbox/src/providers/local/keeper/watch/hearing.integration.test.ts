import { readFileSync } from "node:fs";
import { expect, test, vi } from "vitest";
import { manualClock } from "../../../../keeper/clock-fixture.ts";
import { run } from "../../../../run.ts";
import { sandboxUid } from "../../launch/launch.ts";
import { layoutOf, prepareStateDirectory } from "../../layout.ts";
import type { SandboxRecord } from "../../record.ts";
import { setUpLocal } from "../../testing.ts";
import { startKeeper } from "../keeper.ts";

test("a sandbox whose pid 1 falls deaf is ended: its commands are lost, and nobody waits for it any longer", async () => {
  await using local = setUpLocal();
  const layout = layoutOf(local.stateDir);
  prepareStateDirectory(layout, sandboxUid);
  const clock = manualClock();
  const settings = { stateDir: local.stateDir, sandboxUid, minFreeBytes: 0, environment: process.env };
  const keeper = await startKeeper(settings, clock, () => {});
  const sandbox = await local.provider.create({ cpu: 1, memoryMb: 256, diskMb: 256, idleMs: null });
  const running = await sandbox.exec({ shell: "sleep 1000" });
  const { process: pid1 } = JSON.parse(readFileSync(layout.sandboxRecord(sandbox.id), "utf8")) as SandboxRecord;
  process.kill(pid1?.pid ?? 0, "SIGSTOP");
  const asked = [run(sandbox, ["true"]), sandbox.files.stat("/etc/passwd"), running.kill({ graceMs: 0 })];
  const answers = Promise.allSettled(asked);
  await vi.waitFor(
    async () => {
      await clock.advance(10_000);
      expect(await sandbox.info()).toMatchObject({ state: "stopped", reason: "provider_lost" });
    },
    { timeout: 60_000 },
  );
  expect(await running.wait()).toMatchObject({ reason: "lost", exitCode: null });
  expect((await answers).map(({ status }) => status)).toEqual(["rejected", "rejected", "fulfilled"]);
  await sandbox.start();
  expect((await run(sandbox, "echo here")).stdout).toBe("here\n");
  await sandbox.destroy();
  keeper.close();
  await keeper.closed;
});
