import type { ExecChunk, ExecExit } from "@slipway/contract";
import { SlipwayError } from "@slipway/contract";
import { describe, expect, test, vi } from "vitest";
import { type CliOptions, runCli, startCli } from "../../../testing/run-cli.ts";
import {
  addSandbox,
  blankExit,
  createStubProvider,
  execOf,
  exited,
  type StubExec,
  stubExec,
} from "../../../testing/stub-provider.ts";

function withExec(exec: StubExec) {
  const { requests, ...parts } = execOf(exec);
  const provider = createStubProvider({}, parts);
  addSandbox(provider, { labels: { name: "box" } });
  return { provider, requests };
}

const out = (data: string | Uint8Array): ExecChunk => ({ type: "stdout", offset: 0, data: Buffer.from(data) });
const err = (data: string): ExecChunk => ({ type: "stderr", offset: 0, data: Buffer.from(data) });

async function execCli(exec: StubExec, words: readonly string[], options: CliOptions = {}) {
  const { provider, requests } = withExec(exec);
  return { ...(await runCli(["sandbox", "exec", ...words], { provider, ...options })), requests };
}

describe("exit codes", () => {
  const cases: [string, Partial<ExecExit>, number][] = [
    ["0", { reason: "exited", exitCode: 0 }, 0],
    ["the command's own", { reason: "exited", exitCode: 7 }, 7],
    ["128 + n after a signal", { reason: "signaled", signal: "SIGTERM" }, 143],
    ["124 after a timeout", { reason: "timeout", signal: "SIGKILL" }, 124],
    ["137 after a kill", { reason: "killed", signal: "SIGKILL" }, 137],
    ["137 when memory ran out", { reason: "out_of_memory" }, 137],
    ["125 when the end was not observed", { reason: "lost" }, 125],
  ];
  test.each(cases)("the exit code is %s", async (_, exit, expected) => {
    const { code } = await execCli(stubExec([], { ...blankExit, ...exit }), ["box", "--", "x"]);
    expect(code).toBe(expected);
  });

  test("a program that cannot be started is our failure", async () => {
    const exec = () => Promise.reject(new SlipwayError("exec_not_started", "nope: no such program"));
    const provider = createStubProvider({}, { exec });
    addSandbox(provider, { labels: { name: "box" } });
    const { code, stderr } = await runCli(["sandbox", "exec", "box", "nope"], { provider });
    expect(code).toBe(125);
    expect(stderr).toContain("code: exec_not_started");
  });
});

describe("the request", () => {
  test.each([
    ["behind --", ["box", "--cwd", "/tmp", "--", "ls", "--json", "-la"]],
    ["without --", ["--cwd", "/tmp", "box", "ls", "--json", "-la"]],
  ])("a program %s is taken as it is", async (_, words) => {
    const { code, requests } = await execCli(stubExec([], exited(0)), words);
    expect(code).toBe(0);
    expect(requests).toEqual([
      { argv: ["ls", "--json", "-la"], cwd: "/tmp", env: {}, stdin: "none", timeoutMs: 300_000, background: false },
    ]);
  });

  test("timeout, variables and input are passed on", async () => {
    const words = ["-i", "--timeout", "2s", "-e", "A=1=2", "-e", "HERE", "box", "--", "x"];
    const { requests } = await execCli(stubExec([], exited(0)), words, { stdin: "", env: { HERE: "there" } });
    expect(requests[0]).toMatchObject({ env: { A: "1=2", HERE: "there" }, stdin: "open", timeoutMs: 2000 });
  });

  test("a terminal has its size and kind, and no timeout", async () => {
    const options = { terminal: true, env: { TERM: "vt220" }, stdin: "" };
    const { requests } = await execCli(stubExec([], exited(0)), ["-it", "box", "--", "sh"], options);
    expect(requests[0]).toMatchObject({ pty: { cols: 100, rows: 30 }, env: { TERM: "vt220" }, timeoutMs: null });
  });

  test("--detach prints the exec's id and lets it run", async () => {
    const exec = stubExec();
    const { code, stdout, requests } = await execCli(exec, ["-d", "box", "--", "server"]);
    expect({ code, stdout }).toEqual({ code: 0, stdout: `${exec.id}\n` });
    expect(requests[0]).toMatchObject({ background: true, timeoutMs: null });
    expect(exec.calls).toEqual(["dispose"]);
  });
});

describe("streams", () => {
  test("every byte goes to its own stream, unchanged", async () => {
    const binary = Uint8Array.from({ length: 256 }, (_, i) => i);
    const exec = stubExec([out(binary), err("warning\x1b[0m"), out("end")], exited(0));
    const { stdoutBytes, stderr } = await execCli(exec, ["box", "--", "x"], { terminal: true });
    expect(stdoutBytes).toEqual(Buffer.concat([binary, Buffer.from("end")]));
    expect(stderr).toBe("warning\x1b[0m");
  });

  test("standard input is passed on and ended", async () => {
    const exec = stubExec();
    const { provider } = withExec(exec);
    const cli = startCli(["sandbox", "exec", "-i", "box", "--", "cat"], { provider, stdin: Buffer.from([0, 255, 10]) });
    await vi.waitFor(() => expect(exec.calls).toContain("end"));
    exec.finish(exited(0));
    expect((await cli.ended).code).toBe(0);
    expect(Buffer.concat(exec.written)).toEqual(Buffer.from([0, 255, 10]));
  });

  test("--json is one line with text, or base64 for what is not UTF-8", async () => {
    const exec = stubExec([out("grüße"), { type: "stderr", offset: 0, data: Uint8Array.of(255, 0) }], exited(3));
    const { code, stdout, stderr } = await execCli(exec, ["--json", "box", "--", "x"]);
    expect({ code, stderr, lines: stdout.split("\n").length }).toEqual({ code: 3, stderr: "", lines: 2 });
    expect(JSON.parse(stdout)).toEqual({
      execId: exec.id,
      exit: exited(3),
      stdout: "grüße",
      stdoutEncoding: "utf8",
      stderr: "/wA=",
      stderrEncoding: "base64",
      truncated: false,
    });
  });

  test("a reader that goes away ends the program like a shell's pipe", async () => {
    const exec = stubExec([out("y\n")]);
    const onStdout = () => {
      throw Object.assign(new Error("broken"), { code: "EPIPE" });
    };
    const { code, stderr } = await execCli(exec, ["box", "--", "yes"], { onStdout });
    expect({ code, stderr }).toEqual({ code: 141, stderr: "" });
    expect(exec.calls).toContain("SIGPIPE tree");
  });
});

describe("interrupts and terminals", () => {
  test("the first interrupt is passed on, the second kills", async () => {
    const exec = stubExec([out("started")]);
    const { provider } = withExec(exec);
    const seen = Promise.withResolvers<void>();
    const cli = startCli(["sandbox", "exec", "box", "--", "x"], { provider, onStdout: () => seen.resolve() });
    await seen.promise;
    cli.signal("SIGINT");
    expect(exec.calls).toEqual(["SIGINT tree"]);
    cli.signal("SIGINT");
    expect((await cli.ended).code).toBe(137);
    expect(exec.calls).toEqual(["SIGINT tree", "kill", "dispose"]);
  });

  test("raw mode holds while the program runs, resizes are passed on, and the terminal is given back", async () => {
    const exec = stubExec([out("$ ")]);
    const { provider } = withExec(exec);
    const cli = startCli(["sandbox", "exec", "-it", "box", "--", "sh"], { provider, terminal: true });
    await vi.waitFor(() => expect(cli.rawModes).toEqual([true]));
    Object.assign(cli.stdout, { columns: 120, rows: 40 }).emit("resize");
    cli.stdin.write("\x03");
    await vi.waitFor(() => expect(Buffer.concat(exec.written).toString()).toBe("\x03"));
    exec.finish(exited(0));
    expect((await cli.ended).code).toBe(0);
    expect(cli.rawModes).toEqual([true, false]);
    expect(exec.calls).toContain("resize 120x40");
  });

  test("a terminal is given back after a failure and after a termination, too", async () => {
    for (const end of ["failure", "SIGTERM"] as const) {
      const exec = stubExec([out("$ ")]);
      if (end === "failure") exec.wait = () => Promise.reject(new SlipwayError("provider_unavailable", "gone"));
      const { provider } = withExec(exec);
      const cli = startCli(["sandbox", "exec", "-it", "box", "--", "sh"], { provider, terminal: true });
      await vi.waitFor(() => expect(cli.rawModes).toEqual([true]));
      if (end === "failure") exec.finish(exited(0));
      else cli.signal(end);
      expect((await cli.ended).code).toBe(end === "failure" ? 125 : 143);
      expect(cli.rawModes).toEqual([true, false]);
    }
  });

  test("letting go of an attached exec leaves it alone", async () => {
    const exec = stubExec([out("tick")]);
    const attached: unknown[] = [];
    const provider = createStubProvider(
      {},
      {
        async attach(id, options) {
          attached.push([id, options?.from]);
          return exec;
        },
      },
    );
    addSandbox(provider, { labels: { name: "box" } });
    const words = ["sandbox", "attach", "box", exec.id, "--from-stdout", "5"];
    const seen = Promise.withResolvers<void>();
    const cli = startCli(words, { provider, onStdout: () => seen.resolve() });
    await seen.promise;
    cli.signal("SIGINT");
    expect((await cli.ended).code).toBe(130);
    expect(attached).toEqual([[exec.id, { stdout: 5, stderr: 0 }]]);
    expect(exec.calls).toEqual(["dispose"]);
  });
});
