import { existsSync, readdirSync } from "node:fs";
import { createServer } from "node:net";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { OwnedSandbox } from "../../../provider.ts";
import { run } from "../../../run.ts";
import { type Attacker, answers, attack } from "./attacker-fixture.ts";

let attacker: Attacker;
let hostile: OwnedSandbox;
let neighbour: OwnedSandbox;
beforeAll(async () => {
  attacker = attack();
  [hostile, neighbour] = await Promise.all([
    attacker.sandbox({ diskMb: 512, memoryMb: 1024 }),
    attacker.sandbox({ env: { MARK: "neighbour" } }),
  ]);
  await neighbour.files.write("/workspace/secret", "the neighbour's");
});
afterAll(() => attacker[Symbol.asyncDispose]());

describe("what the kernel counts by user, taken by one sandbox as far as it gets,", () => {
  const kinds = ["instances", "watches", "in_flight", "locked", "timers", "files"];
  test.each(kinds)("leaves enough to its neighbour: %s", async (kind) => {
    const { exec, said } = await attacker.start(hostile, "hog", [kind]);
    expect(Number(/: (\d+)/.exec(said())?.[1])).toBeGreaterThan(0);

    const needs = answers((await attacker.run(neighbour, "needs")).stdout);
    expect([...needs].filter(([, answer]) => answer !== "done")).toEqual([]);
    // What pid 1 does for the host goes on, next door and in the hog's own sandbox.
    for (const sandbox of [hostile, neighbour]) {
      const command = await sandbox.exec({ shell: "read line; echo $line; exec sleep 60", stdin: "open" });
      await command.write("hello\n");
      for await (const chunk of command.output()) if (chunk.type === "stdout") break;
      await command.kill({ graceMs: 0 });
      expect(await command.wait()).toMatchObject({ reason: "killed", stdoutBytes: 6 });
    }
    await using another = await attacker.sandbox();
    expect((await run(another, ["true"])).exitCode).toBe(0);
    await exec.kill({ graceMs: 0 });
    expect(await exec.wait()).toMatchObject({ reason: "killed" });
  });

  test("a watch by the host goes on next door", async () => {
    const { exec } = await attacker.start(hostile, "hog", ["instances"]);
    const watching = new AbortController();
    const changes = neighbour.files.watch("/workspace", { signal: watching.signal })[Symbol.asyncIterator]();
    const first = changes.next();
    let isTold = false;
    const told = first.finally(() => {
      isTold = true;
    });
    // Nobody says when the watch has begun.
    for (let count = 0; !isTold; count++) await neighbour.files.write("/workspace/new", `${count}`);
    expect((await told).value).toMatchObject({ path: "/workspace/new" });
    watching.abort();
    await exec.kill({ graceMs: 0 });
  });
});

describe("a sandbox", () => {
  test("finds nothing of its neighbour's files, processes or environment", async () => {
    const script =
      "grep -r \"the neighbour's\" / --exclude-dir=proc --exclude-dir=usr -s -l; cat /proc/[0-9]*/environ | tr '\\0' '\\n' | grep MARK; true";
    expect((await run(hostile, script)).stdout).toBe("");
  });

  test("finds nothing of the state directory, though mountinfo names it", async () => {
    const boxes = join(attacker.stateDir, "boxes");
    const paths = [attacker.stateDir, boxes, join(boxes, neighbour.id), join(attacker.stateDir, "keeper.sock")];
    expect(paths.every((path) => existsSync(path))).toBe(true);
    const { stdout } = await run(hostile, `for path in ${paths.join(" ")}; do test -e $path && echo $path; done; true`);
    expect(stdout).toBe("");
    expect((await run(hostile, "ls -A /run/slipway")).stdout.trim()).toBe("egress.sock");
  });

  test("has one way out in /run/slipway, which it cannot replace", async () => {
    const script =
      "rm -f /run/slipway/egress.sock; ln -s /etc/passwd /run/slipway/x; mv /run/slipway /run/other; ls /run";
    const { stdout, stderr } = await run(hostile, script);
    expect(stdout.split("\n")).toContain("slipway");
    expect(stderr).toMatch(/Read-only file system/);
    expect(readdirSync(join(attacker.stateDir, "boxes", hostile.id, "egress"))).toEqual(["egress.sock"]);
  });

  test("does not reach its neighbour's ports, nor the host's", async () => {
    const server = createServer((socket) => socket.end("host"));
    const port = await new Promise<number>((resolve) => {
      server.listen(0, "127.0.0.1", () => resolve((server.address() as { port: number }).port));
    });
    const listener = await neighbour.exec({
      shell: "exec python3 -m http.server 3000 --bind 127.0.0.1",
      background: true,
    });
    const reached = await retry(() => neighbour.connect(3000));
    reached.destroy();
    const probe = `import socket
for port in (3000, ${port}):
    for host in ("127.0.0.1", "::1", "0.0.0.0", "localhost"):
        try: socket.create_connection((host, port), 2); print(host, port)
        except OSError: pass`;
    expect((await run(hostile, ["python3", "-c", probe])).stdout).toBe("");
    await listener.kill({ graceMs: 0 });
    server.close();
  });

  test("sees none of the host's abstract sockets, and the host none of its own", async () => {
    const name = `\0slipway-escape-${process.pid}`;
    const server = createServer((socket) => socket.end("host"));
    await new Promise<void>((resolve) => {
      server.listen(name, resolve);
    });
    const probe = `import socket
s = socket.socket(socket.AF_UNIX)
try: s.connect("\\0slipway-escape-${process.pid}"); print("reached")
except OSError as error: print(error.errno)
print(len(open("/proc/net/unix").read().splitlines()) < 20)`;
    expect((await run(hostile, ["python3", "-c", probe])).stdout.trim()).toBe("111\nTrue");
    server.close();
  });

  test("takes part in no System V or POSIX memory of another", async () => {
    await run(hostile, ["python3", "-c", "open('/dev/shm/shared', 'w').write('x')"]);
    expect((await run(neighbour, "ls -A /dev/shm; tail -n +2 /proc/sysvipc/shm")).stdout).toBe("");
  });
});

async function retry<T>(call: () => Promise<T>): Promise<T> {
  for (let left = 2000; ; left--) {
    try {
      return await call();
    } catch (error) {
      if (left === 0) throw error;
      await new Promise((resolve) => setTimeout(resolve, 25));
    }
  }
}
