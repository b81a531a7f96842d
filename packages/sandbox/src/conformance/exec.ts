import { newId } from "@slipway/contract";
import { describe, expect, test } from "vitest";
import { readText, run } from "../run.ts";
import { type Conformance, collect, expectCode, runProgram, startReady } from "./context.ts";
import { command } from "./programs.ts";

export function describeExec(c: Conformance): void {
  describe("exec", () => {
    test("answers both streams, the exit code and how much there was", async () => {
      const result = await runProgram(c.shared, "speak", ["to stdout", "to stderr"]);
      expect(result).toMatchObject({ stdout: "to stdout", stderr: "to stderr", exitCode: 0, truncated: false });
      expect(result.exit).toMatchObject({ reason: "exited", signal: null, stdoutBytes: 9, stderrBytes: 9 });
      expect(result.exit.durationMs).toBeGreaterThanOrEqual(0);
    });

    test("an exit code is the command's own", async () => {
      for (const code of [0, 1, 42, 255])
        expect((await runProgram(c.shared, "exit", [String(code)])).exitCode).toBe(code);
    });

    test("a shell text is run by sh", async () => {
      expect(await run(c.shared, "pwd")).toMatchObject({ stdout: "/workspace\n", exitCode: 0 });
    });

    test("wait answers without anyone having read the output", async () => {
      const exec = await c.shared.exec(command("speak", "unread", ""));
      expect(await exec.wait()).toMatchObject({ reason: "exited", exitCode: 0, stdoutBytes: 6 });
    });

    test("wait answers the same to everyone who asks", async () => {
      const exec = await c.shared.exec(command("exit", "3"));
      const [first, second] = await Promise.all([exec.wait(), exec.wait()]);
      expect(second).toEqual(first);
      expect(await exec.wait()).toEqual(first);
    });

    test("the working directory is the sandbox's unless the command names one", async () => {
      const place = c.place();
      await c.shared.files.mkdir(place);
      expect((await runProgram(c.shared, "workingDirectory", [], { cwd: place })).stdout).toBe(`${place}\n`);
      const relative = place.slice("/workspace/".length);
      expect((await runProgram(c.shared, "workingDirectory", [], { cwd: relative })).stdout).toBe(`${place}\n`);
    });

    test("an argument of 64 KiB arrives whole", async () => {
      expect((await runProgram(c.shared, "argumentLength", ["x".repeat(65536)])).stdout.trim()).toBe("65536");
    });

    test("an argument may be empty, have spaces, quotes and any character", async () => {
      for (const text of ["", " a  b ", "'\"$HOME`\\", "ünï\n\t☃"]) {
        expect((await runProgram(c.shared, "speak", [text, ""])).stdout).toBe(text);
      }
    });

    test("a program that does not exist is not started", async () => {
      await expectCode(c.shared.exec({ argv: ["/no/such/program"] }), "exec_not_started");
      await expectCode(c.shared.exec({ argv: ["no-such-program-in-path"] }), "exec_not_started");
    });

    test("a working directory that does not exist is not entered", async () => {
      await expectCode(c.shared.exec({ ...command("exit", "0"), cwd: "/no/such/directory" }), "exec_not_started");
    });

    test("the list of execs has running and ended ones", async () => {
      const running = await c.shared.exec({ ...command("quiet", "60"), background: true });
      const ended = await c.shared.exec(command("exit", "4"));
      const exit = await ended.wait();
      const list = await c.shared.execs();
      expect(list.find(({ id }) => id === running.id)).toMatchObject({ background: true, exit: null });
      expect(list.find(({ id }) => id === ended.id)).toMatchObject({ background: false, exit });
      expect(list.find(({ id }) => id === ended.id)?.argv).toEqual(command("exit", "4").argv);
      await running.kill();
    });

    test("letting go of a handle cancels nothing", async () => {
      const path = c.place();
      let id: Awaited<ReturnType<typeof c.shared.exec>>["id"];
      {
        await using exec = await c.shared.exec(command("append", path, "done"));
        id = exec.id;
      }
      expect(await (await c.shared.attach(id)).wait()).toMatchObject({ exitCode: 0 });
      expect(await readText(c.shared.files, path)).toBe("done");
    });

    test("many commands run at once", async () => {
      const results = await Promise.all(
        Array.from({ length: 20 }, (_, i) => runProgram(c.shared, "speak", [`n${i}`, ""])),
      );
      expect(results.map(({ stdout }) => stdout)).toEqual(Array.from({ length: 20 }, (_, i) => `n${i}`));
    });
  });

  describe("environment", () => {
    test("a command has the sandbox's variables, its secrets and its own, which win", async () => {
      await using sandbox = await c.create({
        env: { FROM_SANDBOX: "a", OVERRIDDEN: "b" },
        secrets: { SECRET: "hidden" },
      });
      const read = async (name: string) =>
        (await runProgram(sandbox, "variable", [name], { env: { OVERRIDDEN: "c", OWN: "d" } })).stdout;
      expect(await Promise.all(["FROM_SANDBOX", "OVERRIDDEN", "OWN", "SECRET"].map(read))).toEqual([
        "a\n",
        "c\n",
        "d\n",
        "hidden\n",
      ]);
    });

    test("no call shows a secret again", async () => {
      await using sandbox = await c.create({ secrets: { SECRET: "never-to-be-shown" } });
      await runProgram(sandbox, "exit", ["0"]);
      const shown = [await sandbox.info(), await sandbox.execs(), await c.provider.list()];
      expect(JSON.stringify(shown)).not.toContain("never-to-be-shown");
    });

    test("the coordinator's own environment does not get in", async () => {
      process.env.SLIPWAY_CONFORMANCE_CANARY = "out";
      try {
        expect((await runProgram(c.shared, "variable", ["SLIPWAY_CONFORMANCE_CANARY"])).exitCode).toBe(1);
      } finally {
        delete process.env.SLIPWAY_CONFORMANCE_CANARY;
      }
    });

    test("a command is not root unless the sandbox was made so", async () => {
      expect((await runProgram(c.shared, "userId")).stdout).not.toBe("0\n");
      if (!c.capabilities.rootUser) return await expectCode(c.create({ user: "root" }), "capability_missing");
      await using sandbox = await c.create({ user: "root" });
      expect((await runProgram(sandbox, "userId")).stdout).toBe("0\n");
    });
  });

  describe("a retried start", () => {
    test("with the same id runs the command once and answers its output", async () => {
      const path = c.place();
      const request = { ...command("append", path, "once"), id: newId("exc") };
      const first = await c.shared.exec(request);
      await first.wait();
      const second = await c.shared.exec(request);
      expect(second.id).toBe(first.id);
      expect(await second.wait()).toMatchObject({ exitCode: 0 });
      expect(await readText(c.shared.files, path)).toBe("once");
    });

    test("at the same moment runs the command once", async () => {
      const path = c.place();
      const request = { ...command("append", path, "once"), id: newId("exc") };
      const execs = await Promise.all([c.shared.exec(request), c.shared.exec(request), c.shared.exec(request)]);
      await Promise.all(execs.map((exec) => exec.wait()));
      expect(await readText(c.shared.files, path)).toBe("once");
    });

    test("with another command is refused", async () => {
      const id = newId("exc");
      await (await c.shared.exec({ ...command("exit", "0"), id })).wait();
      await expectCode(c.shared.exec({ ...command("exit", "1"), id }), "idempotency_conflict");
    });
  });

  describe("standard input", () => {
    test("is at its end unless it is kept open", async () => {
      expect(await runProgram(c.shared, "echoInput")).toMatchObject({ stdout: "", exitCode: 0 });
    });

    test("arrives in order, bytes of any value, until it is ended", async () => {
      const exec = await c.shared.exec({ ...command("echoInput"), stdin: "open" });
      const output = collect(exec.output());
      await exec.write(Uint8Array.of(0, 255, 254));
      await exec.write("text ☃");
      await exec.end();
      expect((await output).stdout).toEqual(Buffer.concat([Uint8Array.of(0, 255, 254), Buffer.from("text ☃")]));
      expect(await exec.wait()).toMatchObject({ exitCode: 0 });
    });

    test("of several MiB passes through whole", async () => {
      const input = Buffer.alloc(4 * 1024 * 1024, "0123456789abcdef");
      const { stdout, exitCode } = await runProgram(c.shared, "echoInput", [], { input });
      expect(exitCode).toBe(0);
      expect(Buffer.from(stdout).equals(input)).toBe(true);
    });

    test("is refused when it was not kept open", async () => {
      const exec = await c.shared.exec(command("quiet", "60"));
      await expectCode(exec.write("x"), "invalid_request");
      await exec.kill();
    });

    test("is refused after the end", async () => {
      const exec = await c.shared.exec({ ...command("exit", "0"), stdin: "open" });
      await exec.wait();
      await expectCode(exec.write("x"), "exec_ended");
    });

    test("can be written by whoever attaches", async () => {
      const { id } = await c.shared.exec({ ...command("echoInput"), stdin: "open" });
      const exec = await c.shared.attach(id);
      const output = collect(exec.output());
      await exec.write("from another handle");
      await exec.end();
      expect((await output).stdout.toString()).toBe("from another handle");
    });
  });

  describe("signals", () => {
    test("a command takes a signal as it likes", async () => {
      const { exec } = await startReady(c.shared, "takeSignal");
      await exec.signal("SIGUSR1");
      expect(await exec.wait()).toMatchObject({ reason: "exited", exitCode: 5 });
    });

    test("a command that a signal ends has the signal and no exit code", async () => {
      const exec = await c.shared.exec(command("quiet", "60"));
      await exec.signal("SIGKILL", { tree: true });
      expect(await exec.wait()).toMatchObject({ reason: "signaled", exitCode: null, signal: "SIGKILL" });
    });

    test("a signal to an ended command is refused", async () => {
      const exec = await c.shared.exec(command("exit", "0"));
      await exec.wait();
      await expectCode(exec.signal("SIGTERM"), "exec_ended");
    });

    test("an unknown signal is refused", async () => {
      const exec = await c.shared.exec(command("quiet", "60"));
      await expectCode(exec.signal("SIGNONE" as NodeJS.Signals), "invalid_request");
      await exec.kill();
    });
  });
}
