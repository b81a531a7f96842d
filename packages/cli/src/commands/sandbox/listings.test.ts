import { once } from "node:events";
import { type FileInfo, newId, type SandboxEvent, SlipwayError } from "@slipway/contract";
import type { SandboxFiles } from "@slipway/sandbox";
import { describe, expect, test } from "vitest";
import { runCli, startCli } from "../../testing/run-cli.ts";
import { addSandbox, createStubProvider } from "../../testing/stub-provider.ts";

describe("list", () => {
  test("shows those that live, and tells of the others", async () => {
    const provider = createStubProvider();
    const { id } = addSandbox(provider, { labels: { name: "web" } });
    addSandbox(provider, {}, { state: "stopped", reason: "expired" });
    const { stdout, stderr } = await runCli(["sandbox", "list"], { provider });
    expect(stdout.split("\n")[0]).toMatch(/^ID +NAME +STATE/);
    expect(stdout).toMatch(
      new RegExp(`${id} +web +running +started +default +2 cpu, 4096 MB +1m \\d+s ago +in (1h|59m \\d+s)`),
    );
    expect(stdout.trimEnd().split("\n")).toHaveLength(2);
    expect(stderr).toBe("1 more (stopped or failed); --all shows them.\n");
  });

  test("filters by state and label", async () => {
    const provider = createStubProvider();
    addSandbox(provider, { labels: { team: "a" } });
    const { id } = addSandbox(provider, { labels: { team: "a" } }, { state: "stopped" });
    addSandbox(provider, {}, { state: "stopped" });
    const words = ["sandbox", "list", "--state", "stopped", "--label", "team=a"];
    expect(JSON.parse((await runCli([...words, "--json"], { provider })).stdout)).toMatchObject([{ id }]);
    expect((await runCli([...words, "-q"], { provider })).stdout).toBe(`${id}\n`);
    expect((await runCli(["sandbox", "list", "--all", "-q"], { provider })).stdout.trim().split("\n")).toHaveLength(3);
  });

  test("none is an empty list as JSON and a hint for people", async () => {
    const provider = createStubProvider();
    expect((await runCli(["sandbox", "list", "--json"], { provider })).stdout).toBe("[]\n");
    const { stdout, stderr } = await runCli(["sandbox", "list"], { provider });
    expect(stdout).toBe("");
    expect(stderr).toContain("slipway sandbox create");
  });
});

describe("info", () => {
  test("tells about limits, network and times", async () => {
    const provider = createStubProvider();
    const { id } = addSandbox(provider, { network: { domains: ["example.com"], registries: true } });
    const { stdout } = await runCli(["sandbox", "info", id], { provider });
    expect(stdout).toMatch(/limits: +2 cpu, 4096 MB memory, 10240 MB disk, 512 processes/);
    expect(stdout).toMatch(/network: +example\.com, package registries on ports 80, 443/);
  });
});

describe("ls", () => {
  const entry = (path: string, changes: Partial<FileInfo> = {}): FileInfo => ({
    path,
    type: "file",
    size: 2048,
    mode: 0o640,
    modifiedAt: 0,
    symlinkTarget: null,
    ...changes,
  });
  const evil = "/workspace/\x1b]0;owned\x07\nroot";

  function providerWith(entries: FileInfo[]) {
    const files = {
      stat: async () => entry("/workspace", { type: "directory" }),
      async *list() {
        yield* entries;
      },
    } as unknown as SandboxFiles;
    const provider = createStubProvider({}, { files });
    addSandbox(provider, { labels: { name: "box" } });
    return provider;
  }

  test("shows mode, size and name", async () => {
    const provider = providerWith([
      entry("/workspace/b"),
      entry("/workspace/a", { type: "symlink", symlinkTarget: "b" }),
    ]);
    const { stdout } = await runCli(["sandbox", "ls", "box"], { provider });
    expect(stdout).toMatch(/^MODE .*\nlrw-r----- .* a -> b\n-rw-r----- +2\.0 KB +1970-01-01 00:00:00 +b\n$/);
  });

  test("a name cannot send control sequences to a terminal", async () => {
    const options = { provider: providerWith([entry(evil)]), terminal: true, env: { NO_COLOR: "1" } };
    const { stdout } = await runCli(["sandbox", "ls", "box"], options);
    expect(stdout).toContain("?]0;owned??root\n");
    expect(stdout).not.toContain("\x1b");
  });

  test("a name goes to files and programs as it is", async () => {
    const provider = providerWith([entry(evil)]);
    expect((await runCli(["sandbox", "ls", "box"], { provider })).stdout).toContain("\x1b]0;owned\x07");
    expect(JSON.parse((await runCli(["sandbox", "ls", "box", "--json"], { provider })).stdout)[0].path).toBe(evil);
  });
});

describe("rm", () => {
  const receipt = async (id: string) => ({
    sandbox: id as ReturnType<typeof newId<"sbx">>,
    processesEnded: 3,
    processesGone: true as const,
    filesGone: true as const,
    destroyedAt: 1,
  });

  test("prints a receipt for each, goes on after a failure, and then exits with 125", async () => {
    const provider = createStubProvider();
    const { id } = addSandbox(provider);
    provider.sandbox = { destroy: () => receipt(id) };
    const { code, stdout, stderr } = await runCli(["sandbox", "rm", "nope", id], { provider });
    expect(code).toBe(125);
    expect(stdout).toBe(`${id} destroyed: 3 processes ended, none left; files gone\n`);
    expect(stderr).toContain('No sandbox matches "nope"');
  });

  test("--all --json prints one document", async () => {
    const provider = createStubProvider();
    const [a, b] = [addSandbox(provider), addSandbox(provider, {}, { state: "stopped" })];
    let count = 0;
    provider.sandbox = {
      destroy: () =>
        count++ === 0 ? receipt(a.id) : Promise.reject(new SlipwayError("provider_unavailable", "no answer")),
    };
    const { code, stdout } = await runCli(["sandbox", "rm", "--all", "--json"], { provider });
    expect(code).toBe(125);
    expect(JSON.parse(stdout)).toMatchObject({
      receipts: [{ sandbox: a.id, processesGone: true }],
      errors: [{ sandbox: b.id, code: "provider_unavailable" }],
    });
  });
});

describe("events", () => {
  const sandbox = newId("sbx");
  const changed: SandboxEvent = {
    sequence: 1,
    at: 0,
    sandbox,
    type: "sandbox.state_changed",
    from: null,
    to: "creating",
    reason: "requested",
  };
  const refused: SandboxEvent = {
    sequence: 2,
    at: 0,
    sandbox,
    type: "egress.refused",
    host: "x\x1b.com",
    port: 443,
    rule: "not_allowed",
    count: 2,
  };

  function providerWith(...kept: SandboxEvent[]) {
    return createStubProvider({
      async *events({ signal, follow } = {}) {
        yield* kept;
        if (follow && !signal?.aborted) await once(signal ?? new EventTarget(), "abort");
      },
    });
  }

  test("kept ones are shown, and the command ends", async () => {
    const options = { provider: providerWith(changed, refused), terminal: true, env: { NO_COLOR: "1" } };
    const { code, stdout } = await runCli(["sandbox", "events"], options);
    expect(code).toBe(0);
    expect(stdout).toContain("sandbox.state_changed  creating (requested)\n");
    expect(stdout).toContain("egress.refused  x?.com:443 (not_allowed), 2 times\n");
  });

  test("--json prints one line each", async () => {
    const { stdout } = await runCli(["sandbox", "events", "--json"], { provider: providerWith(changed, refused) });
    expect(
      stdout
        .trim()
        .split("\n")
        .map((line) => JSON.parse(line)),
    ).toEqual([changed, refused]);
  });

  test("--follow goes on until an interrupt, which ends it well", async () => {
    const seen = Promise.withResolvers<void>();
    const cli = startCli(["sandbox", "events", "-f"], {
      provider: providerWith(changed),
      onStdout: () => seen.resolve(),
    });
    await seen.promise;
    cli.signal("SIGINT");
    expect(await cli.ended).toMatchObject({ code: 0, stderr: "" });
  });
});
