import { newId, type SnapshotId } from "@slipway/contract";
import { describe, expect, test } from "vitest";
import type { OwnedSandbox } from "../provider.ts";
import { readText } from "../run.ts";
import { type Conformance, eventually, expectCode, runProgram, startReady, uniqueName } from "./context.ts";
import { command } from "./programs.ts";

export function describeSnapshots(c: Conformance): void {
  const { snapshotWhileRunning } = c.capabilities;
  /** A sandbox in a state that the provider can snapshot. */
  const prepared = async (content: string): Promise<OwnedSandbox> => {
    const sandbox = await c.create();
    await sandbox.files.write("/workspace/f", content);
    if (!snapshotWhileRunning) await sandbox.stop();
    return sandbox;
  };

  describe("a snapshot", () => {
    test("keeps the files as they were, for any number of sandboxes", async () => {
      await using source = await prepared("then");
      const snapshot = await source.snapshot();
      if (!snapshotWhileRunning) await source.start();
      await source.files.write("/workspace/f", "later");
      await using first = await c.create({ snapshot: snapshot.id });
      await using second = await c.create({ snapshot: snapshot.id });
      await first.files.write("/workspace/f", "changed in the first");
      expect(await readText(second.files, "/workspace/f")).toBe("then");
      expect(await readText(source.files, "/workspace/f")).toBe("later");
      expect(await second.info()).toMatchObject({ snapshot: snapshot.id, state: "running" });
    });

    test("outlives its sandbox", async () => {
      const source = await prepared("kept");
      const snapshot = await source.snapshot();
      await source.destroy();
      await using restored = await c.create({ snapshot: snapshot.id });
      expect(await readText(restored.files, "/workspace/f")).toBe("kept");
    });

    test("keeps modes, links, empty directories and what was removed", async () => {
      await using source = await c.create();
      await source.files.hydrate({ "/workspace/run": "x", "/workspace/gone": "x" });
      await source.files.write("/workspace/run", "x", { mode: 0o755 });
      await source.files.mkdir("/workspace/empty");
      await runProgram(source, "link", ["run", "/workspace/link"]);
      await source.files.remove("/workspace/gone");
      if (!snapshotWhileRunning) await source.stop();
      const { id } = await source.snapshot();
      await using restored = await c.create({ snapshot: id });
      expect(await restored.files.stat("/workspace/run")).toMatchObject({ mode: 0o755 });
      expect(await restored.files.stat("/workspace/empty")).toMatchObject({ type: "directory" });
      expect(await restored.files.stat("/workspace/link")).toMatchObject({ symlinkTarget: "run" });
      await expectCode(restored.files.stat("/workspace/gone"), "file_not_found");
    });

    test("is listed, named, renamed and deleted", async () => {
      await using source = await prepared("x");
      const name = uniqueName();
      const snapshot = await source.snapshot({ name });
      expect(snapshot).toMatchObject({ name, sandbox: source.id, expiresAt: null });
      expect(snapshot.bytes).toBeGreaterThanOrEqual(0);
      expect(await c.provider.snapshots.list()).toContainEqual(snapshot);
      expect(await c.provider.snapshots.get(snapshot.id)).toEqual(snapshot);
      const renamed = await c.provider.snapshots.update(snapshot.id, { name: null, expiresInMs: 60_000 });
      expect(renamed.name).toBeNull();
      expect(renamed.expiresAt).toBeGreaterThan(Date.now());
      await c.provider.snapshots.delete(snapshot.id);
      await expectCode(c.provider.snapshots.get(snapshot.id), "snapshot_not_found");
      await expectCode(c.create({ snapshot: snapshot.id }), "snapshot_not_found");
    });

    test("that a sandbox starts from cannot be deleted", async () => {
      await using source = await prepared("x");
      const { id } = await source.snapshot();
      const restored = await c.create({ snapshot: id });
      const other = await c.create({ snapshot: id });
      await expectCode(c.provider.snapshots.delete(id), "snapshot_in_use");
      for (const user of [restored.id, other.id]) await expect(c.provider.snapshots.delete(id)).rejects.toThrow(user);
      expect(await readText(restored.files, "/workspace/f")).toBe("x");
      await restored.destroy();
      await other.destroy();
      await c.provider.snapshots.delete(id);
    });

    test("with a time deletes itself, one without stays", async () => {
      await using source = await prepared("x");
      const brief = await source.snapshot({ expiresInMs: 300 });
      const lasting = await source.snapshot();
      expect(brief.expiresAt).toBe(brief.createdAt + 300);
      await eventually(async () => await expectCode(c.provider.snapshots.get(brief.id), "snapshot_not_found"));
      await c.provider.snapshots.delete(lasting.id);
    });

    test("that does not exist is not found, whatever the id", async () => {
      for (const id of [newId("snp"), newId("sbx"), "../x"] as SnapshotId[]) {
        await expectCode(c.provider.snapshots.get(id), "snapshot_not_found");
        await expectCode(c.provider.snapshots.delete(id), "snapshot_not_found");
        await expectCode(c.provider.snapshots.update(id, { name: "x" }), "snapshot_not_found");
      }
    });

    if (snapshotWhileRunning) {
      test("of a running sandbox leaves it running", async () => {
        await using source = await c.create();
        await source.files.write("/workspace/f", "x");
        const { exec } = await startReady(source, "takeSignal");
        const { id } = await source.snapshot();
        expect(await source.info()).toMatchObject({ state: "running" });
        await exec.signal("SIGUSR1");
        expect(await exec.wait()).toMatchObject({ exitCode: 5 });
        await c.provider.snapshots.delete(id);
      });
    } else {
      test("of a running sandbox is refused", async () => {
        await expectCode(c.shared.snapshot(), "capability_missing", "sandbox_wrong_state");
      });
    }

    if (c.capabilities.stopStart) {
      test("of a stopped sandbox leaves it stopped", async () => {
        await using source = await c.create();
        await source.files.write("/workspace/f", "stopped");
        await source.stop();
        const { id } = await source.snapshot();
        expect(await source.info()).toMatchObject({ state: "stopped" });
        await using restored = await c.create({ snapshot: id });
        expect(await readText(restored.files, "/workspace/f")).toBe("stopped");
        await source.start();
        expect(await readText(source.files, "/workspace/f")).toBe("stopped");
      });
    }
  });

  describe("a fork", () => {
    test("has the files, and neither sees what the other does after", async () => {
      await using source = await prepared("common");
      await using fork = await source.fork();
      if (!snapshotWhileRunning) await source.start();
      expect(fork.id).not.toBe(source.id);
      expect(await readText(fork.files, "/workspace/f")).toBe("common");
      await fork.files.write("/workspace/f", "the fork's");
      await source.files.write("/workspace/own", "the source's");
      expect(await readText(source.files, "/workspace/f")).toBe("common");
      await expectCode(fork.files.stat("/workspace/own"), "file_not_found");
    });

    test("has no process of its source and runs its own", async () => {
      await using source = await prepared("x");
      if (snapshotWhileRunning) await source.exec({ ...command("quiet", "60"), background: true });
      await using fork = await source.fork();
      expect(await fork.execs()).toEqual([]);
      expect((await runProgram(fork, "speak", ["runs", ""])).stdout).toBe("runs");
    });

    test("takes over what is not said otherwise", async () => {
      const labels = { test: uniqueName() };
      await using source = await c.create({ env: { A: "1", B: "1" }, ports: [4000], labels });
      if (!snapshotWhileRunning) await source.stop();
      await using fork = await source.fork({ env: { B: "2" }, labels: { forked: labels.test } });
      expect(await fork.info()).toMatchObject({ ports: [4000], labels: { forked: labels.test } });
      expect((await runProgram(fork, "variable", ["B"])).stdout).toBe("2\n");
      expect((await runProgram(fork, "variable", ["A"])).exitCode).toBe(1);
    });

    test("of a fork outlives both", async () => {
      const source = await prepared("generation 1");
      const second = await source.fork();
      await source.destroy();
      await second.files.write("/workspace/g", "generation 2");
      if (!snapshotWhileRunning) await second.stop();
      await using third = await second.fork();
      await second.destroy();
      expect(await readText(third.files, "/workspace/f")).toBe("generation 1");
      expect(await readText(third.files, "/workspace/g")).toBe("generation 2");
    });
  });
}
