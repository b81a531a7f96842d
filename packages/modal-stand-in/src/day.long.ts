import { createHash } from "node:crypto";
import { mkdtempSync, rmSync } from "node:fs";
import { join } from "node:path";
import type { ExecId } from "@slipway/contract";
import { run, type Sandbox } from "@slipway/sandbox";
import { startKeeperHere } from "@slipway/sandbox/testing/keeper-on-modal";
import { expect, test, vi } from "vitest";
import { startModalStandIn } from "./stand-in.ts";
import { openOn } from "./testing/provider.ts";

const hourMs = 3_600_000;

/** Every two hours of a day: a file, and an exec with output of its own. */
async function work(sandbox: Sandbox, hour: number): Promise<{ id: ExecId; digest: string }> {
  await run(sandbox, ["sh", "-c", `seq ${hour}00000 ${hour}99999 > /workspace/file-${hour}`]);
  const exec = await sandbox.exec({ argv: ["cat", `/workspace/file-${hour}`], background: true });
  return { id: exec.id, digest: await digestOf(sandbox, exec.id) };
}

async function digestOf(sandbox: Sandbox, id: ExecId): Promise<string> {
  await using exec = await sandbox.attach(id);
  const hash = createHash("sha256");
  for await (const chunk of exec.output()) if (chunk.type === "stdout") hash.update(chunk.data);
  expect(await exec.wait()).toMatchObject({ reason: "exited", exitCode: 0 });
  return hash.digest("hex");
}

const digestOfFile = async (sandbox: Sandbox, hour: number) =>
  (await run(sandbox, ["sha256sum", `/workspace/file-${hour}`])).stdout.split(" ")[0];

test("a sandbox's life of 24 hours ends with all its files and outputs kept, and goes on in the next one", async () => {
  await using standIn = await startModalStandIn();
  const directory = mkdtempSync("/var/tmp/slipway-modal-test-");
  const stateDir = join(directory, "state");
  const { clock } = standIn;
  const keeperClock = {
    now: () => clock.now(),
    after(delayMs: number, callback: () => void) {
      const alarm = clock.at(clock.now() + delayMs, callback);
      return () => alarm[Symbol.dispose]();
    },
  };
  const environment = { ...standIn.environment, SLIPWAY_MODAL_TUNNEL_CA: standIn.caFile };
  const lines: string[] = [];
  const keeper = await startKeeperHere(stateDir, environment, keeperClock, (line) => lines.push(line));
  const provider = await openOn(stateDir, environment);
  try {
    const sandbox = await provider.create({ lifetimeMs: 24 * hourMs, idleMs: null, onEnd: "stop" });
    const beats = await sandbox.exec({
      argv: ["sh", "-c", "n=0; while :; do n=$((n+1)); echo $n; sleep 0.2; done"],
      background: true,
      timeoutMs: null,
    });
    const done = new Map<number, { id: ExecId; digest: string }>();
    for (let hour = 2; hour < 24; hour += 2) {
      done.set(hour, await work(sandbox, hour));
      await clock.advance(2 * hourMs);
      expect((await sandbox.info()).state).toBe("running");
    }
    done.set(24, await work(sandbox, 24));
    let heard = "";
    const hearing = (async () => {
      for await (const chunk of beats.output()) if (chunk.type === "stdout") heard += chunk.data;
    })();
    await clock.advance(2 * hourMs - 5 * 60_000);
    await vi.waitFor(async () => expect(await sandbox.info()).toMatchObject({ state: "stopped", reason: "expired" }), {
      timeout: 60_000,
    });
    await hearing.catch(() => undefined);
    await clock.advance(hourMs);
    expect(standIn.running()).toEqual([]);

    await sandbox.start();
    const again = await provider.get(sandbox.id);
    for (const [hour, { id, digest }] of done) {
      expect(await digestOf(again, id), `output of hour ${hour}`).toBe(digest);
      expect(await digestOfFile(again, hour), `file of hour ${hour}`).toBe(digest);
    }
    await using lost = await again.attach(beats.id);
    let kept = "";
    for await (const chunk of lost.output()) if (chunk.type === "stdout") kept += chunk.data;
    expect((await lost.wait()).reason).toBe("lost");
    const numbers = kept.trim().split("\n");
    expect(numbers).toEqual(numbers.map((_, index) => String(index + 1)));
    expect(heard.length).toBeGreaterThan(0);
    expect(kept.startsWith(heard), "all that was heard is kept").toBe(true);
    await sandbox.destroy();
    expect(lines).toEqual([]);
  } finally {
    for (const { id } of await provider.list()) await (await provider.get(id)).destroy();
    await provider[Symbol.asyncDispose]();
    await keeper[Symbol.asyncDispose]();
    rmSync(directory, { recursive: true, force: true });
  }
}, 1_200_000);
