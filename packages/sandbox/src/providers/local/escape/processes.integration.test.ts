import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Exec, OwnedSandbox } from "../../../provider.ts";
import { run } from "../../../run.ts";
import { type Attacker, attack, users } from "./attacker-fixture.ts";

let attacker: Attacker;
beforeAll(() => {
  attacker = attack();
});
afterAll(() => attacker[Symbol.asyncDispose]());

describe.each(users)("as %s inside", (user) => {
  let sandbox: OwnedSandbox;
  beforeAll(async () => {
    sandbox = await attacker.sandbox({ user });
  });

  test.each([1, 5, 19])("a command that its handler is made to trace does not end by stopping (%i)", async (signal) => {
    const { exit, stdout } = await attacker.run(sandbox, "traced", [String(signal)], { timeoutMs: 4000 });
    if (exit.reason === "exited") expect([exit.exitCode, stdout]).toEqual([42, "still here\n"]);
    else expect(exit.reason).not.toBe("lost");
  });

  test("a command that hides behind a dead first thread is killed with its tree", async () => {
    const { exec } = await attacker.start(sandbox, "headless");
    await exec.kill({ graceMs: 0, signal: AbortSignal.timeout(60_000) });
    expect(await exec.wait()).toMatchObject({ reason: "killed" });
  });

  test("a command that hides behind a dead first thread does not outlive its timeout", async () => {
    const { exec } = await attacker.start(sandbox, "headless", [], { timeoutMs: 5000 });
    expect(await exec.wait({ signal: AbortSignal.timeout(60_000) })).toMatchObject({ reason: "timeout" });
  });

  test("a command whose end another one withholds by tracing it still ends by its timeout", async () => {
    await attacker.put(sandbox, "tracer");
    const victim = await sandbox.exec({ shell: "echo $$; read line; exit 0", stdin: "open", timeoutMs: 10_000 });
    const pid = await firstLine(victim);
    const { exec: tracer } = await attacker.start(sandbox, "tracer", [pid]);
    await victim.end();
    expect(await victim.wait({ signal: AbortSignal.timeout(60_000) })).toMatchObject({ reason: "timeout" });
    await tracer.kill({ graceMs: 0 });
  });

  test("nothing of it is left", async () => {
    const { stdout } = await run(sandbox, "ps -e -o comm= | grep -c attack-; true");
    expect(stdout.trim()).toBe("0");
  });
});

async function firstLine(exec: Exec): Promise<string> {
  for await (const chunk of exec.output())
    if (chunk.type === "stdout") return Buffer.from(chunk.data).toString().trim();
  throw new Error("no output");
}
