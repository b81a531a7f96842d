import { setTimeout as sleep } from "node:timers/promises";
import { describe, expect, test } from "vitest";
import type { Sandbox } from "../provider.ts";
import { readText } from "../run.ts";
import { type Conformance, eventually, expectCode, startReady } from "./context.ts";
import { command } from "./programs.ts";

export function describeEnd(c: Conformance): void {
  describe("a killed exec", () => {
    test("ends as killed, without an exit code", async () => {
      const exec = await c.shared.exec(command("quiet", "60"));
      await exec.kill();
      const exit = await exec.wait();
      expect(exit).toMatchObject({ reason: "killed", exitCode: null });
      expect(["SIGTERM", "SIGKILL"]).toContain(exit.signal);
    });

    test("that ignores TERM is ended by KILL after the grace period", async () => {
      const { exec } = await startReady(c.shared, "ignoreTerm");
      const started = Date.now();
      await exec.kill({ graceMs: 200 });
      expect(Date.now() - started).toBeGreaterThanOrEqual(150);
      expect(await exec.wait()).toMatchObject({ reason: "killed", exitCode: null, signal: "SIGKILL" });
    });

    test("leaves no child, not even a daemon that left its session twice", async () => {
      const path = c.place();
      const { exec } = await startReady(c.shared, "daemon", [path]);
      await eventually(async () => expect((await readText(c.shared.files, path)).length).toBeGreaterThan(4));
      await exec.kill({ graceMs: 100 });
      await expectStill(c.shared, path);
    });

    test("can be killed again, and by whoever attaches", async () => {
      const { id } = await c.shared.exec(command("quiet", "60"));
      const exec = await c.shared.attach(id);
      await exec.kill();
      await exec.kill();
      expect(await exec.wait()).toMatchObject({ reason: "killed" });
    });

    test("an end is what it was: a kill after the exit changes nothing", async () => {
      const exec = await c.shared.exec(command("exit", "3"));
      const exit = await exec.wait();
      await exec.kill();
      expect(await exec.wait()).toEqual(exit);
    });
  });

  describe("a timeout", () => {
    test("ends the command as timed out, and its children with it", async () => {
      const path = c.place();
      const exec = await c.shared.exec({ ...command("daemon", path), timeoutMs: 400 });
      const exit = await exec.wait();
      expect(exit).toMatchObject({ reason: "timeout", exitCode: null });
      await eventually(async () => await expectStill(c.shared, path));
    });

    test("is not put off by output, by an attach or by a poll", async () => {
      const exec = await c.shared.exec({ ...command("count", "2000", "0.05"), timeoutMs: 500 });
      for (const pause of [100, 100, 100]) {
        await sleep(pause);
        const handle = await c.shared.attach(exec.id);
        await c.shared.info();
        await handle[Symbol.asyncDispose]();
      }
      const exit = await exec.wait();
      expect(exit.reason).toBe("timeout");
      expect(exit.durationMs).toBeGreaterThanOrEqual(450);
    });

    test("of a command that ends in time has no effect", async () => {
      const exec = await c.shared.exec({ ...command("exit", "6"), timeoutMs: 10_000 });
      expect(await exec.wait()).toMatchObject({ reason: "exited", exitCode: 6 });
    });
  });

  describe("an exit is only ever an observed one", () => {
    if (c.capabilities.stopStart) {
      test("a command that a stop ended has no exit code", async () => {
        await using sandbox = await c.create();
        const exec = await sandbox.exec(command("quiet", "60"));
        await sandbox.stop();
        if (!c.capabilities.logsWhileStopped) await sandbox.start();
        const exit = await (await sandbox.attach(exec.id)).wait();
        expect(exit.exitCode).toBeNull();
        expect(["killed", "lost", "signaled"]).toContain(exit.reason);
      });
    }

    test("a command that a destroy ended never answers success", async () => {
      const sandbox = await c.create();
      const exec = await sandbox.exec(command("quiet", "60"));
      const waiting = exec.wait();
      waiting.catch(() => undefined);
      await sandbox.destroy();
      const exit = await waiting.catch(async (error: unknown) => {
        await expectCode(Promise.reject(error), "sandbox_not_found");
        return null;
      });
      expect(exit?.exitCode ?? null).toBeNull();
    });
  });
}

/** Nothing appends to the file any more. */
export async function expectStill(sandbox: Pick<Sandbox, "files">, path: string): Promise<void> {
  const before = await readText(sandbox.files, path).catch(() => "");
  await sleep(250);
  expect(await readText(sandbox.files, path).catch(() => "")).toBe(before);
}
