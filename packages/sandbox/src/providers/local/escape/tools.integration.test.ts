import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { readRecords } from "../../../keeper/record.ts";
import type { OwnedSandbox } from "../../../provider.ts";
import { run } from "../../../run.ts";
import { layoutOf } from "../layout.ts";
import type { SandboxRecord } from "../record.ts";
import { type LocalSetup, setUpLocal } from "../testing.ts";
import { small, users } from "./attacker-fixture.ts";

let local: LocalSetup;
let source: string;
beforeAll(() => {
  source = mkdtempSync(join(tmpdir(), "slipway-tool-"));
  mkdirSync(join(source, "bin"));
  writeFileSync(join(source, "bin/program"), "#!/bin/sh\necho original\n", { mode: 0o755 });
  local = setUpLocal(process.env, { tool: source });
});
afterAll(async () => {
  await local[Symbol.asyncDispose]();
  rmSync(source, { recursive: true });
});

const attempts = [
  "mount -o remount,rw /opt/tool",
  "mount -o remount,bind,rw /opt/tool",
  "umount /opt/tool",
  "umount -l /opt/tool",
  "mount -t tmpfs none /opt/tool",
  "unshare -Urm mount -o remount,bind,rw /opt/tool",
  "mv /opt/tool /opt/other",
  "rmdir /opt/tool",
  "rm -rf /opt/tool",
  "chown 0 /opt/tool/bin/program && chmod u+s /opt/tool/bin/program",
  "echo > /opt/tool/bin/program",
  "ln -f /bin/true /opt/tool/bin/program",
  'python3 -c \'open("/opt/tool/bin/program", "r+")\'',
  "echo > /proc/1/root/opt/tool/bin/program",
];

describe.each(users)("of %s inside,", (user) => {
  let sandbox: OwnedSandbox;
  beforeAll(async () => {
    sandbox = await local.provider.create({ ...small, user, tools: ["tool"] });
  });

  test.each(attempts)("`%s` changes no tool", async (attempt) => {
    expect((await run(sandbox, attempt)).exitCode).not.toBe(0);
    expect((await run(sandbox, ["/opt/tool/bin/program"])).stdout).toBe("original\n");
    const [record] = readRecords<SandboxRecord>(layoutOf(local.stateDir).records.sandboxes);
    const tree = join(layoutOf(local.stateDir).tools, record?.tools[0]?.digest ?? "");
    expect(readFileSync(join(tree, "bin/program"), "utf8")).toContain("original");
  });

  test("the mount is read-only, without devices and without the rights of owners", async () => {
    const { stdout } = await run(sandbox, "grep ' /opt/tool ' /proc/self/mountinfo");
    expect(stdout.split(" ")[5]?.split(",")).toEqual(expect.arrayContaining(["ro", "nosuid", "nodev"]));
  });

  test("a directory above the tool that is put elsewhere hurts only its own sandbox", async () => {
    await using own = await local.provider.create({ ...small, user, tools: ["tool"] });
    await run(own, "mv /opt /tmp/moved && ln -s /etc /opt");
    await own.stop();
    const started = await own.start().then(
      () => "running",
      ({ code }) => code,
    );
    expect(["running", "sandbox_start_failed"]).toContain(started);
    await using other = await local.provider.create({ ...small, user, tools: ["tool"] });
    expect((await run(other, ["/opt/tool/bin/program"])).stdout).toBe("original\n");
  });
});
