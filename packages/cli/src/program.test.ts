import { SlipwayError } from "@slipway/contract";
import { describe, expect, test } from "vitest";
import { commands } from "./commands/table.ts";
import { runCli, startCli } from "./testing/run-cli.ts";
import { addSandbox, createStubProvider } from "./testing/stub-provider.ts";

describe("help", () => {
  test("slipway alone tells what there is and how to try it", async () => {
    const { code, stdout } = await runCli([]);
    expect(code).toBe(0);
    expect(stdout).toContain("slipway sandbox create");
    expect(stdout).toContain("slipway doctor");
  });

  test.each(commands.map((command) => command.name))("slipway %s has help with every option", async (name) => {
    const words = name.split(" ");
    const { code, stdout } = await runCli([...words, "--help"]);
    expect(code).toBe(0);
    expect(stdout).toContain(`Usage: slipway ${name}`);
    const command = commands.find((candidate) => candidate.name === name);
    for (const option of Object.keys(command?.options ?? {})) expect(stdout).toContain(`--${option}`);
    expect((await runCli(["help", ...words])).stdout).toBe(stdout);
  });

  test("slipway sandbox lists all of its commands", async () => {
    const { code, stdout } = await runCli(["sandbox"]);
    expect(code).toBe(0);
    for (const { name } of commands) if (name.startsWith("sandbox ")) expect(stdout).toContain(name.slice(8));
  });

  test("every command can be loaded", async () => {
    for (const command of commands) expect((await command.load()).run).toBeTypeOf("function");
  });

  test("--version prints the version", async () => {
    expect((await runCli(["--version"])).stdout).toMatch(/^\d+\.\d+\.\d+\n$/);
  });

  test("help needs no settings", async () => {
    expect((await runCli(["sandbox", "--help"], { env: { SANDBOX_PROVIDER: "podman" } })).code).toBe(0);
  });
});

describe("a wrong command line", () => {
  const cases: [string, string[], RegExp][] = [
    ["an unknown command", ["sandbx"], /Did you mean "slipway sandbox"\?/],
    ["an unknown subcommand", ["sandbox", "crate"], /Did you mean "slipway sandbox create"\?/],
    ["a subcommand without its group", ["create"], /Did you mean "slipway sandbox create"\?/],
    ["a word near to nothing", ["sandbox", "xyzzy"], /Unknown command "slipway sandbox xyzzy"\.\n/],
    ["an unknown option", ["sandbox", "create", "--memroy", "4g"], /Did you mean --memory\?/],
    ["a missing argument", ["sandbox", "info"], /<id> is missing/],
    ["an argument too many", ["sandbox", "info", "a", "b"], /"b" is one argument too many/],
    ["a missing value", ["sandbox", "create", "--cpu"], /--cpu needs a value/],
    ["an option in place of a value", ["sandbox", "create", "--name", "--user"], /--name needs a value/],
    ["a switch with a value", ["sandbox", "list", "--all=yes"], /--all takes no value/],
    ["an option twice", ["sandbox", "create", "--cpu", "1", "--cpu", "2"], /--cpu is given twice/],
    ["a duration without unit", ["sandbox", "create", "--lifetime", "60"], /--lifetime: "60" is not a duration/],
    ["a size that is none", ["sandbox", "create", "--memory", "lots"], /--memory: "lots"/],
    ["a port that is none", ["sandbox", "create", "--port", "99999"], /--port: "99999" .* 1 to 65535/],
    ["a pair without name", ["sandbox", "create", "--env", "=x"], /--env: "=x" has no name/],
    ["a variable that is not set", ["sandbox", "create", "--secret", "TOKEN"], /TOKEN is not set in this environment/],
    ["a label without value", ["sandbox", "create", "--label", "a"], /--label: "a" must have the form KEY=VALUE/],
    ["a name like an id", ["sandbox", "create", "--name", "sbx_1"], /--name: "sbx_1" is not a name/],
    ["a name with a colon", ["sandbox", "create", "--name", "a:b"], /is not a name/],
    ["idle longer than the lifetime", ["sandbox", "create", "--lifetime", "1m", "--idle", "2m"], /--idle is longer/],
    ["none beside other names", ["sandbox", "create", "--net", "none,example.com"], /--net none cannot be combined/],
    ["an unknown choice", ["sandbox", "create", "--user", "bob"], /--user: "bob" is not one of agent, root/],
    ["no program", ["sandbox", "exec", "a"], /program to run is missing/],
    ["program options before --", ["sandbox", "exec", "a", "--colour", "--", "ls"], /Put `--` before a program/],
    ["rm of nothing", ["sandbox", "rm"], /No sandbox is named/],
    ["cp inside this machine", ["sandbox", "cp", "a", "b"], /Neither path is in a sandbox/],
    ["an unknown signal", ["sandbox", "kill", "a", "b", "--signal", "NOPE"], /"NOPE" is not a signal/],
  ];
  test.each(cases)("%s is told with what to do, and exits with 125", async (_, argv, expected) => {
    const { code, stdout, stderr } = await runCli(argv, { provider: createStubProvider() });
    expect(stderr).toMatch(expected);
    expect(stderr).toMatch(/^error: .*\nwhat to do: .*\ncode: invalid_request\n$/s);
    expect({ code, stdout }).toEqual({ code: 125, stdout: "" });
  });

  test("with --json it is one JSON document on standard error", async () => {
    const { code, stdout, stderr } = await runCli(["sandbox", "info", "--json"]);
    expect({ code, stdout }).toEqual({ code: 125, stdout: "" });
    expect(JSON.parse(stderr).error).toMatchObject({ code: "invalid_request", retry: "never" });
  });

  test("the secret in a malformed --inject is not repeated", async () => {
    const { stderr } = await runCli(["sandbox", "create", "--inject", "hunter2"]);
    expect(stderr).toContain("--inject must have the form");
    expect(stderr).not.toContain("hunter2");
  });
});

describe("failures", () => {
  const failing = (error: unknown) => createStubProvider({ list: () => Promise.reject(error) });

  test("an expected failure shows message, action and code, and exits with 125", async () => {
    const provider = failing(new SlipwayError("provider_unavailable", "The keeper does not answer."));
    const { code, stderr } = await runCli(["sandbox", "list"], { provider });
    expect(code).toBe(125);
    expect(stderr).toMatch(
      /^error: The keeper does not answer\.\nwhat to do: Try again.*\ncode: provider_unavailable\n$/,
    );
  });

  test("with --json it carries code, retry and action", async () => {
    const provider = failing(new SlipwayError("provider_unavailable", "No answer."));
    const { stderr } = await runCli(["sandbox", "list", "--json"], { provider });
    expect(JSON.parse(stderr)).toEqual({
      error: { code: "provider_unavailable", message: "No answer.", retry: "later", action: expect.any(String) },
    });
  });

  test("a defect shows its stack only with SLIPWAY_DEBUG=1", async () => {
    const provider = failing(new TypeError("x is undefined"));
    const quiet = await runCli(["sandbox", "list"], { provider });
    expect(quiet.code).toBe(125);
    expect(quiet.stderr).toMatch(/^internal error: x is undefined\n/);
    expect(quiet.stderr).not.toContain("    at ");
    const loud = await runCli(["sandbox", "list"], { provider, env: { SLIPWAY_DEBUG: "1" } });
    expect(loud.stderr).toContain("TypeError: x is undefined\n    at ");
  });

  test("wrong settings are all told, with 125", async () => {
    const env = { SANDBOX_PROVIDER: "podman", SANDBOX_PREVIEW_PORT: "x" };
    const { code, stderr } = await runCli(["sandbox", "list"], { env, provider: createStubProvider() });
    expect(code).toBe(125);
    expect(stderr).toMatch(/2 settings are wrong:\n- SANDBOX_PREVIEW_PORT.*\n- SANDBOX_PROVIDER.*\n/);
    expect(stderr).toContain("code: invalid_settings");
  });

  test("a control sequence in a message does not reach a terminal", async () => {
    const provider = failing(new SlipwayError("file_not_found", "no \x1b]0;owned\x07 here"));
    const { stderr } = await runCli(["sandbox", "list"], { provider, terminal: true, env: { NO_COLOR: "1" } });
    expect(stderr).toContain("no ?]0;owned? here");
    expect(stderr).not.toContain("\x1b");
  });

  test("a reader that goes away ends the program without a word", async () => {
    const provider = createStubProvider();
    addSandbox(provider);
    const onStdout = () => {
      throw Object.assign(new Error("broken"), { code: "EPIPE" });
    };
    const { code, stderr } = await runCli(["sandbox", "list"], { provider, onStdout });
    expect({ code, stderr }).toEqual({ code: 141, stderr: "" });
  });

  test("an interrupt aborts the work and exits with 130", async () => {
    const started = Promise.withResolvers<void>();
    const list = (_: unknown, { signal }: { signal?: AbortSignal } = {}) =>
      new Promise<never>((_resolve, reject) => {
        signal?.addEventListener("abort", () => reject(new SlipwayError("aborted", "aborted")));
        started.resolve();
      });
    const cli = startCli(["sandbox", "list"], { provider: createStubProvider({ list }) });
    await started.promise;
    cli.signal("SIGINT");
    expect(await cli.ended).toMatchObject({ code: 130, stderr: "interrupted\n" });
  });
});
