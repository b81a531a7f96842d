import { setTimeout as sleep } from "node:timers/promises";
import { type ExecId, newId, type SandboxId } from "@slipway/contract";
import { describe, expect, test } from "vitest";
import { readText } from "../run.ts";
import { type Conformance, collect, expectCode, uniqueName } from "./context.ts";
import { command } from "./programs.ts";

export function describeSurvival(c: Conformance): void {
  describe("a coordinator that is killed", () => {
    if (c.capabilities.execSurvivesCaller) {
      test("in mid-stream loses nothing: another attaches by id and byte, with every byte and the exit code", async () => {
        const other = await c.target.otherCoordinator();
        await using sandbox = await c.create();
        const exec = { ...command("count", "12", "0.1"), id: newId("exc") };
        const report = await other.send({ type: "stream", sandbox: sandbox.id, exec, bytes: 14 });
        await other.kill();
        if (report.type !== "streamed") throw new Error(report.type);
        await expectCounted(c, sandbox.id, report.exec, report.bytes, 12);
        await expectCounted(c, sandbox.id, report.exec, 0, 12);
      });
    }

    test("in the middle of a file's write leaves the old file", async () => {
      const other = await c.target.otherCoordinator();
      const path = c.place();
      await c.shared.files.write(path, "old");
      await other.send({ type: "write", sandbox: c.shared.id, path });
      await other.kill();
      await sleep(100);
      expect(await readText(c.shared.files, path)).toBe("old");
      await c.shared.files.write(path, "new");
      expect(await readText(c.shared.files, path)).toBe("new");
    });

    test("leaves its sandboxes to the next: they are listed, and a retried create answers the same one", async () => {
      const other = await c.target.otherCoordinator();
      const request = { labels: { owner: uniqueName() }, idempotencyKey: uniqueName() };
      const report = await other.send({ type: "create", request });
      await other.kill();
      if (report.type !== "created") throw new Error(report.type);
      const sandbox = await c.provider.create(request);
      expect(sandbox.id).toBe(report.sandbox);
      expect(await c.provider.list({ labels: request.labels })).toHaveLength(1);
      await sandbox.destroy();
      await expectCode(c.provider.get(report.sandbox), "sandbox_not_found");
    });
  });

  test("a look for strays leaves what is recorded and runs alone", async () => {
    const report = await c.provider.reconcile();
    expect(report.lost).toEqual([]);
    expect(await c.shared.info()).toMatchObject({ state: "running" });
  });
}

async function expectCounted(
  c: Conformance,
  sandbox: SandboxId,
  id: ExecId,
  had: number,
  lines: number,
): Promise<void> {
  const from = { stdout: had, stderr: 0 };
  const exec = await (await c.provider.get(sandbox)).attach(id, { from });
  const whole = Array.from({ length: lines }, (_, i) => `line ${i + 1}\n`).join("");
  expect((await collect(exec.output(), from)).stdout.toString()).toBe(whole.slice(had));
  expect(await exec.wait()).toMatchObject({ reason: "exited", exitCode: 7, stdoutBytes: whole.length });
}
