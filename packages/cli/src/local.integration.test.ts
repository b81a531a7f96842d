import { spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { chmod, mkdir, mkdtemp, readFile, readlink, rm, stat, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import { type Bin, binPath, openBin, repository } from "./testing/bin.ts";
import { type } from "./testing/type.ts";

// Longer than a terminal waits.
vi.setConfig({ testTimeout: 300_000 });

let slipway: Bin;
let here: string;
const box = "box";

beforeAll(async () => {
  slipway = await openBin();
  here = await mkdtemp(join(tmpdir(), "slipway-here-"));
  const created = await slipway.run(["sandbox", "create", "--name", box]);
  expect(created).toMatchObject({ code: 0, stderr: "", stdout: expect.stringMatching(/^sbx_\w{20}\n$/) });
});
afterAll(async () => {
  await slipway?.[Symbol.asyncDispose]();
  await rm(here, { recursive: true, force: true });
});

const exec = (...argv: string[]) => slipway.run(["sandbox", "exec", box, "--", ...argv]);
const json = async (...argv: string[]) => {
  const { code, stdout, stderr } = await slipway.run(["--json", ...argv]);
  expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
  return JSON.parse(stdout);
};

test("the doctor finds this machine fit", async () => {
  const { healthy, findings } = await json("doctor");
  expect(findings.filter(({ status }: { status: string }) => status === "fail")).toEqual([]);
  expect(healthy).toBe(true);
});

describe("programs", () => {
  test.each([
    ["exit 0", 0],
    ["exit 7", 7],
    ["kill -TERM $$", 143],
    ["kill -KILL $$", 137],
  ])("sh -c %j exits with %i", async (script, expected) => {
    expect(await exec("sh", "-c", script)).toMatchObject({ code: expected, stdout: "" });
  });

  test("a timeout exits with 124, a program that is not there with 125", async () => {
    const late = await slipway.run(["sandbox", "exec", "--timeout", "200ms", box, "--", "sleep", "60"]);
    expect(late).toMatchObject({ code: 124, stderr: expect.stringContaining("timeout") });
    const missing = await exec("no-such-program");
    expect(missing).toMatchObject({ code: 125, stderr: expect.stringContaining("code: exec_not_started") });
  });

  test("a directory that is not there is named, not the program", async () => {
    const { code, stderr } = await slipway.run(["sandbox", "exec", "-w", "/nope", box, "--", "ls"]);
    expect(code).toBe(125);
    expect(stderr).toContain("ls did not start: its working directory /nope: ENOENT");
    expect(stderr).toContain("the directory to start in");
  });

  test("paths start where npm was called, when npm runs the program", async () => {
    await writeFile(join(here, "here.txt"), "here");
    const npm = { npm_package_name: "slipway", npm_lifecycle_event: "slipway", INIT_CWD: here };
    const env = { ...slipway.environment, ...npm };
    const child = spawn(process.execPath, [binPath, "sandbox", "cp", "here.txt", `${box}:/tmp/here.txt`], { env });
    expect(await text(child.stderr)).toBe("");
    expect((await exec("cat", "/tmp/here.txt")).stdout).toBe("here");
  });

  test("bytes go through unchanged, and streams stay apart", async () => {
    const bytes = randomBytes(1 << 20);
    const echoed = await slipway.run(["sandbox", "exec", "-i", box, "--", "cat"], bytes);
    expect(echoed.code).toBe(0);
    expect(echoed.stdoutBytes.equals(bytes)).toBe(true);
    const apart = await exec("sh", "-c", "printf out; printf err >&2; exit 3");
    expect(apart).toMatchObject({ code: 3, stdout: "out", stderr: "err" });
  });

  test("directory, variables and user are as asked for", async () => {
    const words = ["sandbox", "exec", "--cwd", "/tmp", "-e", "A=b c", box, "--", "sh", "-c", "pwd; echo $A; id -un"];
    expect((await slipway.run(words)).stdout).toBe("/tmp\nb c\nagent\n");
  });

  test("a detached exec can be listed, followed from a byte, and killed", async () => {
    const script = "printf 0123456789; sleep 600 & sleep 600";
    const { execId } = await json("sandbox", "exec", "-d", box, "--", "sh", "-c", script);
    expect(await json("sandbox", "execs", box)).toContainEqual(expect.objectContaining({ id: execId, exit: null }));
    const attached = slipway.start(["sandbox", "attach", box, execId, "--from-stdout", "4"]);
    const [output, closed] = [text(attached.stdout), once(attached, "close")];
    await once(attached.stdout, "readable");
    const killed = await json("sandbox", "kill", box, execId);
    expect(killed.exit).toMatchObject({ reason: "killed", stdoutBytes: 10 });
    const [code] = await closed;
    expect(code).toBeGreaterThan(128);
    expect(await output).toBe("456789");
  });

  test("an interrupt reaches the program, whose exit code counts", async () => {
    const script = "trap 'exit 9' INT; echo ready; while :; do sleep 0.05; done";
    const child = slipway.start(["sandbox", "exec", box, "--", "sh", "-c", script]);
    await once(child.stdout, "data");
    child.kill("SIGINT");
    expect((await once(child, "close"))[0]).toBe(9);
  });

  test("a reader that goes away ends the program, too", async () => {
    const pipe = spawn("sh", ["-c", `"$0" "$1" sandbox exec ${box} -- yes | head -n 1`, process.execPath, binPath], {
      env: slipway.environment,
    });
    const [output, errors] = await Promise.all([text(pipe.stdout), text(pipe.stderr)]);
    expect({ output, errors }).toEqual({ output: "y\n", errors: "" });
    await vi.waitFor(async () => expect((await exec("pgrep", "yes")).code).toBe(1));
  });
});

describe("a terminal", () => {
  test("a shell knows its size, follows a change of it, and exits as told", async () => {
    const {
      shown,
      raw: _raw,
      ...end
    } = await type(
      slipway,
      ["sandbox", "shell", box],
      [
        ["$ ", "stty size\\r"],
        ["33 101", "resize 77 22"],
        ["", `until [ "$(stty size)" = "22 7"7 ]; do sleep 0.05; done; stty size; tty\\r`],
        ["22 77", "exit 5\\r"],
      ],
    );
    expect(end).toEqual({ code: 5, restored: true, left: 0 });
    expect(shown).toMatch(/\/dev\/(pts\/\d+|tty)/);
  });

  test("Ctrl-C is the program's, not ours", async () => {
    const script = "trap 'echo caught; exit 4' INT; echo ready; while :; do sleep 0.05; done";
    const {
      shown,
      raw: _raw,
      ...end
    } = await type(slipway, ["sandbox", "exec", "-it", box, "--", "sh", "-c", script], [["ready", "\\x03"]]);
    expect(end).toEqual({ code: 4, restored: true, left: 0 });
    expect(shown).toContain("caught");
  });
});

describe("files", () => {
  test("a tree goes in and comes out the same", async () => {
    const source = join(here, "tree");
    await mkdir(join(source, "sub", "empty"), { recursive: true });
    const binary = randomBytes(300_000);
    await writeFile(join(source, "sub", "binary"), binary);
    await writeFile(join(source, "run.sh"), "#!/bin/sh\necho ran\n");
    await chmod(join(source, "run.sh"), 0o755);
    await writeFile(join(source, "nothing"), "");
    await symlink("sub/binary", join(source, "link"));
    await symlink("/etc/passwd", join(source, "outside"));
    expect(await json("sandbox", "cp", source, `${box}:/workspace/copied`)).toMatchObject({ entries: 7, leftOut: [] });
    expect((await exec("sh", "-c", "copied/run.sh; readlink copied/link")).stdout).toBe("ran\nsub/binary\n");
    const back = join(here, "back");
    const copied = await json("sandbox", "cp", `${box}:/workspace/copied`, back);
    expect(copied.leftOut).toEqual([{ path: "outside", reason: expect.stringContaining("/etc/passwd") }]);
    expect((await readFile(join(back, "sub", "binary"))).equals(binary)).toBe(true);
    expect(await readFile(join(back, "nothing"))).toHaveLength(0);
    expect((await stat(join(back, "run.sh"))).mode & 0o777).toBe(0o755);
    expect((await stat(join(back, "sub", "empty"))).isDirectory()).toBe(true);
    expect(await readlink(join(back, "link"))).toBe("sub/binary");
  });

  test("a single file goes through standard input and output", async () => {
    const bytes = randomBytes(70_000);
    expect(await slipway.run(["sandbox", "cp", "-", `${box}:blob`], bytes)).toMatchObject({ code: 0, stderr: "" });
    expect((await slipway.run(["sandbox", "cp", `${box}:blob`, "-"])).stdoutBytes.equals(bytes)).toBe(true);
    expect((await slipway.run(["sandbox", "ls", box])).stdout).toMatch(/-rw-r--r-- +68 KB .* blob\n/);
  });

  test("a path that is not there is told", async () => {
    const { code, stderr } = await slipway.run(["sandbox", "cp", `${box}:/nowhere`, here]);
    expect({ code, told: stderr.includes("code: file_not_found") }).toEqual({ code: 125, told: true });
  });
});

describe("life", () => {
  test("a snapshot and a fork start with the files, and go their own ways", async () => {
    await exec("sh", "-c", "echo first > state");
    const snapshot = await json("sandbox", "snapshot", box, "--name", "one", "--expires", "1h");
    await exec("sh", "-c", "echo second > state");
    await json("sandbox", "create", "--snapshot", "one", "--name", "restored");
    await json("sandbox", "fork", box, "--name", "forked");
    const stateOf = async (name: string) => (await slipway.run(["sandbox", "exec", name, "--", "cat", "state"])).stdout;
    expect(await stateOf("restored")).toBe("first\n");
    expect(await stateOf("forked")).toBe("second\n");
    expect((await slipway.run(["sandbox", "snapshots"])).stdout).toContain(snapshot.id);
    const removed = await json("sandbox", "rm", "restored", "forked");
    expect(removed).toMatchObject({ receipts: [{ processesGone: true }, { filesGone: true }], errors: [] });
    expect(await json("sandbox", "snapshot-rm", "one")).toEqual({ snapshot: snapshot.id, deleted: true });
  });

  test("it sleeps, wakes, stops and starts with its files", async () => {
    await exec("sh", "-c", "echo kept > kept");
    for (const [command, state] of [
      ["sleep", "sleeping"],
      ["wake", "running"],
      ["stop", "stopped"],
      ["start", "running"],
    ] as const) {
      expect(await json("sandbox", command, box)).toMatchObject({ state });
    }
    expect((await exec("cat", "kept")).stdout).toBe("kept\n");
    const events = await slipway.run(["sandbox", "events", box, "--json"]);
    const states = events.stdout
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line).to);
    expect(states).toEqual(expect.arrayContaining(["sleeping", "stopped", "running"]));
  });

  test("its lifetime is extended", async () => {
    const { expiresAt } = await json("sandbox", "keep-alive", box, "3h");
    expect(expiresAt).toBeGreaterThan(Date.now() + 2.9 * 3_600_000);
    expect((await json("sandbox", "info", box)).expiresAt).toBe(expiresAt);
  });

  test("a port is reached through a forward", async () => {
    const server = "require('http').createServer((_, answer) => answer.end('from inside')).listen(3000)";
    await json("sandbox", "exec", "-d", box, "--", "node", "-e", server);
    const forward = slipway.start(["sandbox", "forward", box, "3000", "--listen", "0", "--json"]);
    const [first] = await once(forward.stdout, "data");
    const { port } = JSON.parse(String(first)).listen;
    const answer = await vi.waitFor(async () => (await fetch(`http://127.0.0.1:${port}/`)).text());
    expect(answer).toBe("from inside");
    forward.kill("SIGINT");
    expect((await once(forward, "close"))[0]).toBe(0);
  });

  test("rm prints what is proven gone, and nothing is left", async () => {
    await slipway.run(["sandbox", "create", "--name", "short"]);
    const { code, stdout } = await slipway.run(["sandbox", "rm", "short"]);
    expect({ code, stdout }).toEqual({
      code: 0,
      stdout: expect.stringMatching(/^sbx_\w+ destroyed: \d+ process(es)? ended, none left; files gone\n$/),
    });
    const names = (await json("sandbox", "list", "--all")).map(({ labels }: { labels: object }) => labels);
    expect(names).toEqual([{ name: box }]);
  });
});

test("the example runs", async () => {
  const child = spawn(process.execPath, [join(repository, "examples", "sandbox.ts"), slipway.stateDir]);
  const [output, errors] = await Promise.all([text(child.stdout), text(child.stderr)]);
  expect({ output, errors }).toEqual({
    output: "hello, world, from /workspace as agent\nexited with 0\n",
    errors: "",
  });
});
