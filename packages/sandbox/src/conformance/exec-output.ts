import { createHash } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import { execLogLimitBytes, newId } from "@slipway/contract";
import { describe, expect, test } from "vitest";
import { readText } from "../run.ts";
import { type Conformance, collect, expectCode, runProgram } from "./context.ts";
import { command, floodBlock, floodBlockBytes } from "./programs.ts";

export function describeOutput(c: Conformance): void {
  describe("output", () => {
    test("of any bytes comes as it is, and a byte that is no UTF-8 ends nothing", async () => {
      const exec = await c.shared.exec(command("rawBytes"));
      const { stdout } = await collect(exec.output());
      expect(stdout).toEqual(Buffer.concat([Uint8Array.of(0x61, 0xff, 0xfe, 0x62, 0, 0x63), Buffer.from("after")]));
    });

    test("a command that says nothing for long is not cut off", async () => {
      expect(await runProgram(c.shared, "quiet", ["1.5"])).toMatchObject({ stdout: "done", exitCode: 0 });
    });

    test("ends with the command, even when a child still holds it", async () => {
      const started = Date.now();
      expect(await runProgram(c.shared, "leaveChild")).toMatchObject({ stdout: "left\n", exitCode: 0 });
      expect(Date.now() - started).toBeLessThan(29_000);
    });

    test("can be taken once", async () => {
      const exec = await c.shared.exec(command("exit", "0"));
      await collect(exec.output());
      await expectCode(async () => await collect(exec.output()), "invalid_request");
    });

    test("that its reader does not take slows the command, and nothing of it is lost", async () => {
      const progress = c.place();
      const blocks = 24;
      const exec = await c.shared.exec(command("flood", String(blocks), progress));
      const output = exec.output()[Symbol.asyncIterator]();
      const first = await output.next();
      await sleep(600);
      const ahead = Number(await readText(c.shared.files, progress).catch(() => "0"));
      expect(ahead).toBeLessThan(blocks / 2);
      const hash = createHash("sha256");
      let bytes = 0;
      for (let next = first; next.done !== true; next = await output.next()) {
        if (next.value.type === "output_truncated") throw new Error("a live reader gets all of it");
        hash.update(next.value.data);
        bytes += next.value.data.length;
      }
      expect(bytes).toBe(blocks * floodBlockBytes);
      expect(hash.digest("hex")).toBe(floodHash(blocks));
      expect(await exec.wait()).toMatchObject({ exitCode: 0, stdoutBytes: bytes });
    });

    test("past the kept log reaches live readers whole; who attaches later is told where it was cut", async () => {
      const total = execLogLimitBytes + floodBlockBytes;
      const exec = await c.shared.exec(command("repeat", String(total)));
      let live = 0;
      for await (const chunk of exec.output()) if (chunk.type === "stdout") live += chunk.data.length;
      expect(live).toBe(total);
      const late = await c.shared.attach(exec.id);
      let kept = 0;
      let truncated = false;
      for await (const chunk of late.output()) {
        if (chunk.type === "stdout") kept += chunk.data.length;
        else truncated = true;
      }
      expect(truncated).toBe(true);
      expect(kept).toBeLessThanOrEqual(execLogLimitBytes);
      expect(kept).toBeGreaterThan(execLogLimitBytes - floodBlockBytes);
      expect(await late.wait()).toMatchObject({ exitCode: 0, stdoutBytes: total });
    });
  });

  describe("attach", () => {
    test("to an ended command answers its whole output and its exit", async () => {
      const exec = await c.shared.exec(command("speak", "kept", "too"));
      await exec.wait();
      const again = await c.shared.attach(exec.id);
      const { stdout, stderr } = await collect(again.output());
      expect([stdout.toString(), stderr.toString()]).toEqual(["kept", "too"]);
      expect(await again.wait()).toEqual(await exec.wait());
    });

    test("goes on from the given bytes of each stream", async () => {
      const exec = await c.shared.exec(command("speak", "0123456789", "abcdef"));
      await exec.wait();
      const from = { stdout: 4, stderr: 6 };
      const again = await c.shared.attach(exec.id, { from });
      const { stdout, stderr } = await collect(again.output(), from);
      expect([stdout.toString(), stderr.toString()]).toEqual(["456789", ""]);
    });

    test("to a running command answers what was and what comes", async () => {
      const exec = await c.shared.exec(command("count", "6", "0.05"));
      await sleep(120);
      const again = await c.shared.attach(exec.id);
      const { stdout } = await collect(again.output());
      expect(stdout.toString()).toBe("line 1\nline 2\nline 3\nline 4\nline 5\nline 6\n");
      expect(await again.wait()).toMatchObject({ reason: "exited", exitCode: 7 });
    });

    test("a reader that gave up in mid-stream goes on from its byte", async () => {
      const exec = await c.shared.exec(command("count", "8", "0.05"));
      const got = { stdout: 0, stderr: 0 };
      for await (const chunk of exec.output()) {
        if (chunk.type === "stdout") got.stdout += chunk.data.length;
        if (got.stdout >= 14) break;
      }
      await exec[Symbol.asyncDispose]();
      const again = await c.shared.attach(exec.id, { from: got });
      const { stdout } = await collect(again.output(), got);
      expect(stdout.toString()).toBe(countLines(8).slice(got.stdout));
      expect(await again.wait()).toMatchObject({ exitCode: 7 });
    });

    test("several readers each get all of it", async () => {
      const { id } = await c.shared.exec(command("count", "5", "0.02"));
      const readers = await Promise.all([c.shared.attach(id), c.shared.attach(id), c.shared.attach(id)]);
      for (const { stdout } of await Promise.all(readers.map((exec) => collect(exec.output())))) {
        expect(stdout.toString()).toBe(countLines(5));
      }
    });

    test("finds no exec that was not started, is another sandbox's or is no exec's id", async () => {
      await using other = await c.create();
      const { id } = await other.exec(command("exit", "0"));
      await expectCode(c.shared.attach(newId("exc")), "exec_not_found");
      await expectCode(c.shared.attach(id), "exec_not_found");
      await expectCode(c.shared.attach(c.shared.id as unknown as typeof id), "exec_not_found");
      await expectCode(c.shared.attach("../../../etc/passwd" as typeof id), "exec_not_found");
    });
  });

  if (c.subject.cutConnections !== undefined) describeCut(c, c.subject.cutConnections);
}

function describeCut(c: Conformance, cut: NonNullable<Conformance["subject"]["cutConnections"]>): void {
  test("a cut connection cancels nothing: the command goes on, and its output from the byte that was had", async () => {
    const exec = await c.shared.exec(command("count", "10", "0.05"));
    const got = { stdout: 0, stderr: 0 };
    let cutOnce = false;
    const reading = async () => {
      for await (const chunk of exec.output()) {
        if (chunk.type === "stdout") got.stdout += chunk.data.length;
        if (!cutOnce && got.stdout >= 14) {
          cutOnce = true;
          await cut(c.target);
        }
      }
    };
    await reading().catch(async (error: unknown) => await expectCode(Promise.reject(error), "provider_unavailable"));
    const again = await c.shared.attach(exec.id, { from: got });
    const { stdout } = await collect(again.output(), got);
    expect(stdout.toString()).toBe(countLines(10).slice(got.stdout));
    expect(await again.wait()).toMatchObject({ reason: "exited", exitCode: 7 });
  });
}

function countLines(lines: number): string {
  return Array.from({ length: lines }, (_, i) => `line ${i + 1}\n`).join("");
}

function floodHash(blocks: number): string {
  const hash = createHash("sha256");
  for (let block = 0; block < blocks; block++) hash.update(floodBlock(block));
  return hash.digest("hex");
}
