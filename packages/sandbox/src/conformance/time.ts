import { setTimeout as sleep } from "node:timers/promises";
import { maxLifetimeMs } from "@slipway/contract";
import { describe, expect, test } from "vitest";
import type { OwnedSandbox } from "../provider.ts";
import { readText } from "../run.ts";
import { type Conformance, eventually, expectCode, runProgram } from "./context.ts";
import { eventsOf } from "./events.ts";
import { command } from "./programs.ts";

const mostForTheEndMs = 10 * 60_000;

/** Ends and sleeps that come by themselves. The tests wait for time to pass, so they run beside each other. */
export function describeTime(c: Conformance): void {
  describe("time", () => {
    if (c.capabilities.stopStart) describeExpiry(c);

    test.concurrent("a sandbox that is to be destroyed at its end is, and the event says why", async () => {
      const sandbox = await c.create({ lifetimeMs: 5000, onEnd: "destroy" });
      await expectGone(c, sandbox);
      // What is being destroyed is not found any more.
      const destroyed = { type: "sandbox.destroyed", reason: "expired" };
      await eventually(async () => expect((await eventsOf(c, sandbox.id)).at(-1)).toMatchObject(destroyed));
    });

    test.concurrent("a keep-alive extends the lifetime, never shortens it, never past 24 hours", async () => {
      await using sandbox = await c.create({ lifetimeMs: 60_000 });
      const { createdAt, expiresAt } = await sandbox.info();
      const longer = await sandbox.keepAlive(120_000);
      expect(longer.expiresAt).toBeGreaterThanOrEqual(expiresAt + 59_000);
      expect((await sandbox.info()).expiresAt).toBe(longer.expiresAt);
      expect(await sandbox.keepAlive(1000)).toEqual(longer);
      const { expiresAt: latest } = await sandbox.keepAlive(2 * maxLifetimeMs);
      expect(latest).toBeLessThanOrEqual(createdAt + maxLifetimeMs);
      // A provider may need the last minutes to keep the files.
      expect(latest).toBeGreaterThanOrEqual(createdAt + maxLifetimeMs - mostForTheEndMs);
      for (const forMs of [0, -1, 1.5, Number.NaN, Number.POSITIVE_INFINITY]) {
        await expectCode(sandbox.keepAlive(forMs), "invalid_request");
      }
    });

    test.concurrent("a kept sandbox outlives its first end", async () => {
      await using sandbox = await c.create({ lifetimeMs: 15_000 });
      await sandbox.keepAlive(60_000);
      await sleep(15_500);
      expect(await sandbox.info()).toMatchObject({ state: "running" });
    });

    if (c.capabilities.snapshotWhileRunning) describeCheckpoints(c);
    else {
      test("checkpoints of a running sandbox are refused", async () => {
        await expectCode(c.create({ checkpointMs: 1000 }), "capability_missing");
      });
    }
    if (c.capabilities.sleep) describeIdle(c);
  });
}

function describeExpiry(c: Conformance): void {
  test.concurrent("a sandbox at the end of its lifetime stops as expired, told before, with its files kept", async () => {
    await using source = await c.create();
    await source.files.write("/workspace/kept", "kept");
    await using sandbox = await source.fork({ lifetimeMs: 8000, expiringGraceMs: 7000 });
    const { expiresAt } = await sandbox.info();
    await untilState(sandbox, "stopped", "expired");
    await expectCode(sandbox.exec(command("exit", "0")), "sandbox_ended");
    const events = await eventsOf(c, sandbox.id);
    const expiring = events.findIndex(({ type }) => type === "sandbox.expiring");
    const stopped = events.findIndex((event) => event.type === "sandbox.state_changed" && event.to === "stopped");
    expect(events[expiring]).toMatchObject({ expiresAt, reason: "expired" });
    expect(expiring).toBeLessThan(stopped);
    expect(events[expiring]?.at).toBeLessThanOrEqual(events[stopped]?.at ?? 0);
    const before = Date.now();
    await sandbox.start();
    expect((await sandbox.info()).expiresAt).toBeGreaterThan(before);
    await using next = await sandbox.fork({ lifetimeMs: 60_000 });
    expect(await readText(next.files, "/workspace/kept")).toBe("kept");
  });
}

function describeCheckpoints(c: Conformance): void {
  test.concurrent("checkpoints are taken of a running sandbox by themselves", async () => {
    await using sandbox = await c.create({ checkpointMs: 8000 });
    await sandbox.files.write("/workspace/kept", "kept");
    // It has its turn behind a checkpoint that may be without the file.
    await sandbox.keepAlive(1);
    const before = (await eventsOf(c, sandbox.id)).at(-1)?.sequence ?? 0;
    const created = await eventually(async () => {
      const events = await eventsOf(c, sandbox.id);
      const event = events.find(({ type, sequence }) => type === "snapshot.created" && sequence > before);
      if (event?.type !== "snapshot.created") throw new Error("no checkpoint yet");
      return event;
    });
    expect(created.checkpoint).toBe(true);
    await using restored = await c.create({ snapshot: created.snapshot });
    expect(await readText(restored.files, "/workspace/kept")).toBe("kept");
  });
}

function describeIdle(c: Conformance): void {
  test.concurrent("an idle sandbox sleeps, whoever looks at it meanwhile", async () => {
    await using sandbox = await c.create({ idleMs: 500 });
    await eventually(async () => {
      await c.provider.list();
      expect(await sandbox.info()).toMatchObject({ state: "sleeping", reason: "idle" });
    });
    expect((await runProgram(sandbox, "speak", ["awake", ""])).stdout).toBe("awake");
    await untilState(sandbox, "sleeping", "idle");
  });

  test.concurrent("a command under way keeps its sandbox awake, a background one does not", async () => {
    await using busy = await c.create({ idleMs: 300 });
    await using left = await c.create({ idleMs: 300 });
    const exec = await busy.exec(command("quiet", "60"));
    await left.exec({ ...command("quiet", "60"), background: true });
    await untilState(left, "sleeping", "idle");
    await sleep(500);
    expect(await busy.info()).toMatchObject({ state: "running" });
    await exec.kill();
    await untilState(busy, "sleeping", "idle");
  });

  test.concurrent("use puts sleep off", async () => {
    await using sandbox = await c.create({ idleMs: 15_000 });
    for (let i = 0; i < 6; i++) {
      await sleep(3000);
      await sandbox.files.stat("/workspace");
    }
    const slept = (await eventsOf(c, sandbox.id)).filter(
      (event) => event.type === "sandbox.state_changed" && event.to === "sleeping",
    );
    expect(slept).toEqual([]);
  });

  if (c.capabilities.sleepKeepsProcesses) {
    test.concurrent.each([
      ["is quiet", command("quiet", "60")],
      ["speaks", command("count", "600", "0.1")],
    ])("sleep uses up neither the sandbox's time nor that of a command that %s", async (_, asked) => {
      await using sandbox = await c.create({ lifetimeMs: 60_000 });
      const startedAt = Date.now();
      const exec = await sandbox.exec({ ...asked, timeoutMs: 5000 });
      const { expiresAt } = await sandbox.info();
      await sandbox.sleep();
      await sleep(1200);
      await sandbox.wake();
      expect((await sandbox.info()).expiresAt).toBeGreaterThanOrEqual(expiresAt + 1000);
      expect(await exec.wait()).toMatchObject({ reason: "timeout" });
      expect(Date.now() - startedAt).toBeGreaterThanOrEqual(5000 + 1000);
    });
  }

  test.concurrent("a sandbox without idle time stays awake", async () => {
    await using sandbox = await c.create({ idleMs: null });
    await sleep(700);
    expect(await sandbox.info()).toMatchObject({ state: "running" });
  });

  if (c.capabilities.stopStart) {
    test.concurrent("a sandbox that slept too long is stopped with a snapshot, told before", async () => {
      await using sandbox = await c.create({ sleepingMs: 800, expiringGraceMs: 400 });
      await sandbox.files.write("/workspace/kept", "kept");
      await sandbox.sleep();
      await untilState(sandbox, "stopped", "slept_out");
      const expiring = expect.objectContaining({ type: "sandbox.expiring", reason: "slept_out" });
      await eventually(async () => expect(await eventsOf(c, sandbox.id)).toContainEqual(expiring));
      // It is made once nothing runs any more.
      const snapshot = await eventually(async () => {
        const made = (await c.provider.snapshots.list()).find((each) => each.sandbox === sandbox.id);
        if (made === undefined) throw new Error("no snapshot");
        return made;
      });
      await using restored = await c.create({ snapshot: snapshot.id });
      expect(await readText(restored.files, "/workspace/kept")).toBe("kept");
    });
  }
}

async function untilState(sandbox: Pick<OwnedSandbox, "info">, state: string, reason: string): Promise<void> {
  await eventually(async () => expect(await sandbox.info()).toMatchObject({ state, reason }));
}

async function expectGone(c: Conformance, sandbox: OwnedSandbox): Promise<void> {
  await eventually(async () => await expectCode(c.provider.get(sandbox.id), "sandbox_not_found"));
}
