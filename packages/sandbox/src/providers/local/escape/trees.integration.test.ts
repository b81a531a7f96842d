import { randomUUID } from "node:crypto";
import { existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { OwnedSandbox, Sandbox } from "../../../provider.ts";
import { readText, run } from "../../../run.ts";
import { type Attacker, attack, users } from "./attacker-fixture.ts";

let attacker: Attacker;
/** A file of the host that its sandboxes' uid may write, for links to lead to. */
const bait = `/var/tmp/slipway-bait-${randomUUID()}`;
beforeAll(() => {
  attacker = attack();
  writeFileSync(bait, "the host's", { mode: 0o666 });
});
afterAll(async () => {
  await attacker[Symbol.asyncDispose]();
  rmSync(bait, { force: true });
});

/** What a sandbox sees of its own tree: names, kinds, modes, and what links lead to. */
const look = async (sandbox: Sandbox) =>
  (
    await run(
      sandbox,
      "cd / && ls -ldA --time-style=+ bin etc home lib opt root sbin srv tmp usr usr/local workspace var 2>/dev/null | awk '{print $1, $6, $7, $8}'; cat /etc/passwd; ls -RA /workspace /opt /srv | grep -v attack-",
    )
  ).stdout;

describe.each(users)("%s inside plants", (user) => {
  let sandbox: OwnedSandbox;
  beforeAll(async () => {
    sandbox = await attacker.sandbox({ user });
  });

  test("overlay attributes, and a fork sees the same files, no more and no less", async () => {
    const plant = `import os
os.makedirs("/workspace/deep/below", exist_ok=True)
open("/workspace/deep/file", "w").write("x")
said = []
for path in ("/etc", "/workspace", "/workspace/deep", "/workspace/deep/file", "/", "/opt", "/usr/local"):
    for space in ("user", "trusted"):
        for name, value in (("opaque", b"y"), ("redirect", b"/../../../../etc"), ("metacopy", b""), ("origin", b"x"), ("whiteout", b""), ("xwhiteouts", b"")):
            try: os.setxattr(path, "%s.overlay.%s" % (space, name), value)
            except OSError as error: said.append(error.errno)
print(len(said))`;
    expect((await run(sandbox, ["python3", "-c", plant])).exitCode).toBe(0);
    const before = await look(sandbox);
    await using fork = await sandbox.fork();
    expect(await look(fork)).toBe(before);
    await sandbox.stop();
    await using second = await sandbox.fork();
    expect(await look(second)).toBe(before);
    await sandbox.start();
    expect(await look(sandbox)).toBe(before);
  });

  test("links in the places that a restart mounts on or makes, and nothing outside changes", async () => {
    const script = `for place in /dev /proc /run /usr /usr/local /usr/etc /tmp /workspace /home /etc; do
rm -rf $place.new; ln -s ${bait} $place.new; mv -T $place $place.old; mv -T $place.new $place; rmdir $place; ln -sfT ${bait} $place; done 2>/dev/null; true`;
    await run(sandbox, script);
    await sandbox.stop();
    await sandbox.start().catch((error: unknown) => expect(error).toMatchObject({ code: "sandbox_start_failed" }));
    await using fork = await sandbox.fork().catch((error: unknown) => {
      expect(error).toMatchObject({ code: "sandbox_start_failed" });
      return null;
    });
    for (const box of fork === null ? [] : [fork]) {
      expect((await run(box, "test -e /proc/self/root/proc/1 && test -d /dev/pts && ls /run")).stdout).toContain(
        "slipway-agent",
      );
    }
    expect(readFileSync(bait, "utf8")).toBe("the host's");
    await sandbox.destroy();
  });
});

describe("a snapshot", () => {
  test("of a link to a host's file holds the link", async () => {
    await using sandbox = await attacker.sandbox();
    await run(sandbox, `ln -s ${bait} /workspace/bait; ln -s /etc/shadow /workspace/shadow; mkfifo /workspace/pipe`);
    const { id } = await sandbox.snapshot();
    await using copy = await attacker.sandbox({ snapshot: id });
    expect((await run(copy, "readlink /workspace/bait /workspace/shadow; cat /workspace/bait")).stdout.trim()).toBe(
      `${bait}\n/etc/shadow`,
    );
    expect((await copy.files.stat("/workspace/pipe")).type).toBe("other");
  });

  test("of a tree full of holes takes no more disk than the tree", async () => {
    await using sandbox = await attacker.sandbox({ diskMb: 512 });
    await run(sandbox, "for i in $(seq 20); do truncate -s 500M /workspace/hole$i; done");
    const { bytes } = await sandbox.snapshot();
    expect(bytes).toBeLessThan(1024 * 1024);
  });

  test("of processes that map a file without end is refused with words, soon", async () => {
    await using sandbox = await attacker.sandbox();
    const { exec } = await attacker.start(sandbox, "mapper");
    await expect(sandbox.snapshot({ signal: AbortSignal.timeout(100_000) })).rejects.toMatchObject({
      code: "too_large",
    });
    expect((await run(sandbox, ["true"])).exitCode).toBe(0);
    await exec.kill({ graceMs: 0 });
    await sandbox.snapshot();
  });

  test("sees what is written through a map", async () => {
    await using sandbox = await attacker.sandbox();
    const writer = `import mmap, sys
f = open("/workspace/mapped", "w+b"); f.write(b"1" * 4096); f.flush()
m = mmap.mmap(f.fileno(), 4096); m[0:1] = b"1"
print("ready", flush=True)
sys.stdin.readline(); m[0:1] = b"2"; print("written", flush=True)
sys.stdin.readline()`;
    const exec = await sandbox.exec({ argv: ["python3", "-c", writer], stdin: "open" });
    const output = exec.output()[Symbol.asyncIterator]();
    await output.next();
    await sandbox.snapshot();
    await exec.write("\n");
    await output.next();
    await using copy = await attacker.sandbox({ snapshot: (await sandbox.snapshot()).id });
    expect((await readText(copy.files, "/workspace/mapped"))[0]).toBe("2");
    await exec.kill({ graceMs: 0 });
  });
});

describe("a tree of ten thousand levels", () => {
  const dig = "python3 -c \"import os\nfor i in range(10000): os.mkdir('d' * 50); os.chdir('d' * 50)\"";
  test("is destroyed with its sandbox", async () => {
    const sandbox = await attacker.sandbox();
    await run(sandbox, dig);
    expect(await sandbox.destroy()).toMatchObject({ filesGone: true, processesGone: true });
    expect(existsSync(join(attacker.stateDir, "boxes", sandbox.id))).toBe(false);
  });

  test("fails a snapshot with words, and leaves no layer behind", async () => {
    await using sandbox = await attacker.sandbox();
    const layers = () => readdirSync(join(attacker.stateDir, "layers")).sort();
    await run(sandbox, dig);
    // Those of sandboxes that are gone go in the background.
    await attacker.provider.reconcile();
    const before = layers();
    // The disk watch may have ended the sandbox meanwhile; sealing its files then succeeds.
    const taken = await sandbox.snapshot().catch((error: unknown) => {
      expect(error).toHaveProperty("code");
      return null;
    });
    if (taken !== null) await attacker.provider.snapshots.delete(taken.id);
    else expect(layers()).toEqual(before);
  });
});
