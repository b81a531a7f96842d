import { setTimeout as sleep } from "node:timers/promises";
import { describe, expect, test } from "vitest";
import type { CallOptions } from "../provider.ts";
import { readText } from "../run.ts";
import { type Conformance, drain, eventually, expectCode, uniqueName } from "./context.ts";
import { command } from "./programs.ts";

export function describeAbort(c: Conformance): void {
  describe("a caller that gives up", () => {
    test("before the call: nothing is done", async () => {
      const labels = { test: uniqueName() };
      const path = c.place();
      const aborted = { signal: AbortSignal.abort() };
      const exec = await c.shared.exec(command("quiet", "60"));
      const { files } = c.shared;
      const calls: ((options: CallOptions) => Promise<unknown>)[] = [
        (o) => c.provider.create({ labels }, o),
        (o) => c.provider.get(c.shared.id, o),
        (o) => c.provider.list({}, o),
        (o) => c.provider.snapshots.list(o),
        (o) => c.shared.info(o),
        (o) => c.shared.exec(command("append", path, "x"), o),
        (o) => c.shared.attach(exec.id, o),
        (o) => c.shared.snapshot(o),
        (o) => c.shared.fork({ labels }, o),
        (o) => c.shared.connect(3000, o),
        (o) => exec.wait(o),
        (o) => exec.kill(o),
        (o) => drain(files.read(path, o)),
        (o) => files.write(path, "x", o),
        (o) => files.stat("/workspace", o),
        (o) => drain(files.list("/workspace", o)),
        (o) => files.mkdir(path, o),
        (o) => files.remove("/workspace", { ...o, recursive: true }),
        (o) => files.hydrate({ [path]: "x" }, o),
        (o) => files.upload(path, [], o),
        (o) => drain(files.download("/workspace", o)),
        (o) => drain(files.search("x", o)),
      ];
      for (const call of calls) await expectCode(() => call(aborted), "aborted");
      expect(await c.provider.list({ labels })).toEqual([]);
      await expectCode(files.stat(path), "file_not_found");
      expect(await c.shared.execs()).toContainEqual(expect.objectContaining({ id: exec.id, exit: null }));
      await exec.kill();
    });

    test("during a wait or its output: the command goes on", async () => {
      const exec = await c.shared.exec({ ...command("echoInput"), stdin: "open" });
      await expectCode(exec.wait({ signal: AbortSignal.timeout(50) }), "aborted");
      const again = await c.shared.attach(exec.id);
      await expectCode(drain(again.output({ signal: AbortSignal.timeout(50) })), "aborted");
      await exec.end();
      expect(await (await c.shared.attach(exec.id)).wait()).toMatchObject({ reason: "exited", exitCode: 0 });
    });

    test("during a write: the old file stays", async () => {
      const path = c.place();
      await c.shared.files.write(path, "old");
      async function* endless() {
        for (;;) {
          yield Buffer.alloc(65536);
          await sleep(5);
        }
      }
      await expectCode(c.shared.files.write(path, endless(), { signal: AbortSignal.timeout(100) }), "aborted");
      expect(await readText(c.shared.files, path)).toBe("old");
    });

    test("during a create: nothing is left, or it was there in time", async () => {
      const labels = { test: uniqueName() };
      const controller = new AbortController();
      const creating = c.provider.create({ labels }, { signal: controller.signal });
      creating.catch(() => undefined);
      controller.abort();
      const made = await creating.catch(async (error: unknown) => await expectCode(Promise.reject(error), "aborted"));
      await made?.destroy();
      await eventually(async () => expect(await c.provider.list({ labels })).toEqual([]));
    });

    test("of a read in the middle: the rest is not waited for", async () => {
      const path = c.place();
      await c.shared.files.write(path, Buffer.alloc(4 * 1024 * 1024));
      for await (const chunk of c.shared.files.read(path)) {
        expect(chunk.length).toBeGreaterThan(0);
        break;
      }
      await c.shared.files.remove(path);
    });
  });
}
