import { fileURLToPath } from "node:url";
import { describe, expect, test } from "vitest";
import type { Sandbox } from "../provider.ts";
import { run } from "../run.ts";
import { type Conformance, expectCode } from "./context.ts";

/** What a provider under test has set up as tools, where it can. */
export const conformanceTools = { greeter: fileURLToPath(new URL("./fixtures/greeter", import.meta.url)) };

export function describeTools(c: Conformance): void {
  if (!c.capabilities.tools) return;

  describe("a tool", () => {
    test("is in the sandbox that names it, with its programs and links, and is told", async () => {
      await using sandbox = await c.create({ tools: ["greeter"] });
      expect(await greeting(sandbox)).toBe("hello\n");
      expect((await run(sandbox, `cat ${placeIn(sandbox)}/hello`)).stdout).toBe("hello\n");
      expect(await sandbox.info()).toMatchObject({ tools: ["greeter"] });
    });

    test("is in no other sandbox", async () => {
      expect((await run(c.shared, `ls ${placeIn(c.shared)}`)).exitCode).not.toBe(0);
      expect(await c.shared.info()).toMatchObject({ tools: [] });
    });

    for (const user of c.capabilities.rootUser ? (["agent", "root"] as const) : (["agent"] as const)) {
      test(`cannot be changed by ${user} inside`, async () => {
        await using sandbox = await c.create({ tools: ["greeter"], user });
        const attempts = ["echo > words/greeting", "rm words/greeting", "touch new", "chmod 777 .", "mv hello bye"];
        for (const attempt of attempts)
          expect((await run(sandbox, `cd ${placeIn(sandbox)} && ${attempt}`)).exitCode, attempt).not.toBe(0);
        await expect(sandbox.files.write(`${placeIn(sandbox)}/words/greeting`, "x")).rejects.toThrow();
        expect(await greeting(sandbox)).toBe("hello\n");
      });
    }

    if (c.capabilities.stopStart) {
      test("is there again after a stop and a start", async () => {
        await using sandbox = await c.create({ tools: ["greeter"] });
        await sandbox.stop();
        await sandbox.start();
        expect(await greeting(sandbox)).toBe("hello\n");
      });
    }

    test("is taken over by a fork that names none, and is part of no snapshot", async () => {
      await using sandbox = await c.create({ tools: ["greeter"] });
      await using fork = await sandbox.fork();
      expect(await greeting(fork)).toBe("hello\n");
      await using bare = await sandbox.fork({ tools: [] });
      expect((await run(bare, `ls -A ${placeIn(bare)}`)).stdout).toBe("");
      if (!c.capabilities.snapshotWhileRunning) await sandbox.stop();
      const snapshot = await sandbox.snapshot();
      {
        await using without = await c.create({ snapshot: snapshot.id });
        expect((await run(without, `ls -A ${placeIn(without)}`)).stdout).toBe("");
        await using named = await c.create({ snapshot: snapshot.id, tools: ["greeter"] });
        expect(await greeting(named)).toBe("hello\n");
      }
      await c.provider.snapshots.delete(snapshot.id);
    });

    test("that the host does not have is refused, with those that it has", async () => {
      await expectCode(c.create({ tools: ["no-such-tool"] }), "invalid_request");
      await expect(c.create({ tools: ["no-such-tool"] })).rejects.toThrow(/no-such-tool.*greeter/);
      await expectCode(c.shared.fork({ tools: ["constructor"] }), "invalid_request");
    });
  });
}

async function greeting(sandbox: Sandbox): Promise<string> {
  return (await run(sandbox, [`${placeIn(sandbox)}/bin/greet`])).stdout;
}

function placeIn({ toolsDirectory }: Sandbox): string {
  return `${toolsDirectory}/greeter`;
}
