import { SlipwayError } from "@slipway/contract";
import { describe, expect, test } from "vitest";
import type { Exec } from "../provider.ts";
import { readText } from "../run.ts";
import { type Conformance, collect, eventually, expectCode, runProgram, startReady } from "./context.ts";
import { eventsOf } from "./events.ts";
import { command } from "./programs.ts";

/** What is around a command: network, image, terminal, disk. */
export function describeSurroundings(c: Conformance): void {
  describe("network", () => {
    test("is blocked unless named", async () => {
      expect((await runProgram(c.shared, "callOut", ["http://blocked.invalid/"])).exitCode).not.toBe(0);
      expect((await c.shared.info()).network).toMatchObject({ domains: [], cidrs: [], registries: false });
    });

    if (c.capabilities.egressAllowlist && c.capabilities.egressRefusals) {
      test("refuses what the policy does not name, and records it", async () => {
        await using sandbox = await c.create({ network: { domains: ["allowed.invalid"] } });
        expect((await runProgram(sandbox, "callOut", ["http://refused.invalid/"])).exitCode).not.toBe(0);
        await eventually(async () => {
          expect(await eventsOf(c, sandbox.id)).toContainEqual(
            expect.objectContaining({ type: "egress.refused", host: "refused.invalid", port: 80, rule: "not_allowed" }),
          );
        });
      });
    }

    if (c.capabilities.egressAllowlist) {
      test("can be changed while the sandbox runs", async () => {
        await using sandbox = await c.create();
        const policy = { domains: ["*.example.com"], ports: c.capabilities.egressPorts ? [443] : [80, 443] };
        await sandbox.setNetwork(policy);
        expect((await sandbox.info()).network).toMatchObject(policy);
        await sandbox.setNetwork({});
        expect((await sandbox.info()).network).toMatchObject({ domains: [] });
      });
    }
  });

  describe("images", () => {
    test("a known one is prepared ahead, an unknown one refused", async () => {
      await c.provider.prepareImage("default");
      await expectCode(c.provider.prepareImage("no-such-image"), "unknown_image");
    });

    if (c.capabilities.customImages) {
      test("a custom one is built once, and its files are in every sandbox of it", async () => {
        const image = { commands: ["mkdir -p /opt/made && echo built > /opt/made/mark"] };
        await c.provider.prepareImage(image);
        await using sandbox = await c.create({ image });
        expect(await readText(sandbox.files, "/opt/made/mark")).toBe("built\n");
      });

      test("a build that fails says so with the program's own words, and leaves nothing", async () => {
        const image = { commands: ["echo the-program-s-own-words; exit 3"] };
        const before = (await c.provider.list()).length;
        await expectCode(c.create({ image }), "image_build_failed");
        await expect(c.provider.prepareImage(image)).rejects.toThrow("the-program-s-own-words");
        expect(await c.provider.list()).toHaveLength(before);
      });
    }
  });

  if (c.capabilities.pty) {
    describe("a terminal", () => {
      test("has the size it was given", async () => {
        const { exec } = await startReady(c.shared, "terminal", [], {
          pty: { cols: 100, rows: 40 },
          stdin: "open",
        });
        if (c.capabilities.ptyResize) {
          await exec.resize({ cols: 120, rows: 50 });
          expect(await exec.wait()).toMatchObject({ exitCode: 0 });
          const { stdout } = await collect((await c.shared.attach(exec.id)).output());
          expect(stdout.toString()).toMatch(/^40 100\r\nready\r\n50 120\r\n$/);
        } else {
          await expectCode(exec.resize({ cols: 120, rows: 50 }), "capability_missing");
          await exec.kill();
        }
      });

      test("of a command that has none is not resized", async () => {
        const { exec } = await startReady(c.shared, "ignoreTerm");
        await expectCode(exec.resize({ cols: 80, rows: 24 }), "invalid_request", "capability_missing");
        await exec.kill({ graceMs: 0 });
      });
    });
  }

  test("more processes than allowed are refused as such, and ended ones make room", async () => {
    await using sandbox = await c.create({ processes: 16 });
    const execs: Exec[] = [];
    // Of one process each: one that cannot fork ends, and makes room for the next.
    const waiting = { ...command("echoInput"), stdin: "open", background: true } as const;
    const fill = async () => {
      for (let i = 0; i < 100; i++) execs.push(await sandbox.exec(waiting));
    };
    await expectCode(fill(), "process_limit");
    await Promise.all(execs.map((exec) => exec.kill({ graceMs: 100 })));
    expect((await runProgram(sandbox, "speak", ["room", ""])).stdout).toBe("room");
  });

  if (!c.capabilities.diskLimit) return;
  test("a disk that is full is told as such, by the write or as the sandbox's end", async () => {
    await using sandbox = await c.create({ diskMb: 16 });
    const writing = sandbox.files.write("/workspace/large", Buffer.alloc(32 * 1024 * 1024));
    const error = await writing.catch((reason: unknown) => reason);
    if (error instanceof SlipwayError && error.code === "out_of_disk") return;
    // Written whole, or cut off by the end that it brings on.
    await eventually(async () => {
      expect(await sandbox.info()).toMatchObject({ state: "stopped", reason: "out_of_disk" });
    });
  });
}
