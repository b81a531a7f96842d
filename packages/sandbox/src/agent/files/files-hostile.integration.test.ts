import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { hasCode } from "@slipway/contract";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { SandboxFiles } from "../../provider.ts";
import { type AgentBox, execStart, startAgentBox } from "../agent-fixture.ts";
import { startExec } from "../exec/exec.ts";
import { createFiles } from "./files.ts";

let box: AgentBox;
let files: SandboxFiles;
beforeAll(async () => {
  box = await startAgentBox();
  files = createFiles({ dial: box.dial, workdir: "/workspace" });
  const exec = await startExec(
    box.host,
    execStart([
      "bash",
      "-ec",
      "ln -s /proc/self/fd/4 logs; ln -s /proc/1/root root; ln -s /proc/1/fd/4 logs1; ln -s loop loop; mkdir real; ln -s real alias; echo x > real/file; ln -s file real/link",
    ]),
  );
  expect((await exec.wait()).exitCode).toBe(0);
});
afterAll(() => box[Symbol.asyncDispose]());

async function gather<T>(items: AsyncIterable<T>): Promise<T[]> {
  const all: T[] = [];
  for await (const item of items) all.push(item);
  return all;
}

const operations: [string, (path: string) => Promise<unknown>][] = [
  ["read", (path) => gather(files.read(path))],
  ["write", (path) => files.write(path, "evil")],
  ["stat", (path) => files.stat(path, { followSymlink: true })],
  ["list", (path) => gather(files.list(path))],
  ["mkdir", (path) => files.mkdir(path)],
  ["move from", (path) => files.move(path, "/tmp/stolen")],
  ["move to", (path) => files.move("real/file", path)],
  ["remove", (path) => files.remove(path, { recursive: true })],
  ["search", (path) => gather(files.search("x", { path }))],
  ["watch", (path) => gather(files.watch(path))],
  ["upload", (path) => files.upload(path, [{ type: "file", path: "evil", mode: 0o644, content: "evil" }])],
  ["download", (path) => gather(files.download(path))],
];

describe("no file operation reaches the host through a magic link", () => {
  const ways = [
    "logs/deep",
    "logs1/deep",
    "root/etc/passwd",
    "/proc/self/fd/4/x",
    "/proc/1/root/etc",
    "/proc/1/cwd/x",
    "/proc/self/root/etc/x",
    "loop/x",
  ];
  it.each(operations)("%s", async (_, operation) => {
    const before = readdirSync(box.logDir);
    for (const way of ways) {
      await expect(operation(way), way).rejects.toSatisfy(
        (error) =>
          hasCode(error, "path_outside") || hasCode(error, "file_forbidden") || hasCode(error, "file_not_found"),
      );
    }
    expect(readdirSync(box.logDir)).toEqual(before);
  });
});

describe("a link in the last place", () => {
  it("is followed to read and to stat on request, and by nothing that changes", async () => {
    expect(Buffer.concat(await gather(files.read("real/link"))).toString()).toBe("x\n");
    expect((await files.stat("real/link")).type).toBe("symlink");
    expect((await files.stat("real/link", { followSymlink: true })).type).toBe("file");
    await files.write("real/link", "own");
    expect((await files.stat("real/link")).type).toBe("file");
    expect(Buffer.concat(await gather(files.read("real/file"))).toString()).toBe("x\n");
    await files.remove("alias", { recursive: true });
    expect((await gather(files.list("real"))).length).toBe(2);
  });
});

describe("a directory that is swapped for a link all the time", () => {
  it("never lets a write, an upload or a removal touch what the link points to", async () => {
    writeFileSync(join(box.dir, "files", "untouched"), "host's");
    const exec = await startExec(
      box.host,
      execStart([
        "bash",
        "-c",
        "mkdir -p /other/victim target; echo keep > /other/victim/file; echo ready; while :; do mv target aside; ln -s /other/victim target; rm target; mv aside target; done 2>/dev/null",
      ]),
    );
    await exec.output()[Symbol.asyncIterator]().next();
    for (let round = 0; round < 150; round++) {
      await files
        .upload("/workspace", [{ type: "file", path: "target/file", mode: 0o644, content: "evil" }])
        .catch(() => {});
      await files.remove("target/sub", { recursive: true }).catch(() => {});
      await gather(files.download("target")).catch(() => {});
    }
    await exec.kill({ graceMs: 0 });
    expect(Buffer.concat(await gather(files.read("/other/victim/file"))).toString()).toBe("keep\n");
    expect((await gather(files.list("/other/victim"))).map(({ path }) => path)).toEqual(["/other/victim/file"]);
    expect(readFileSync(join(box.dir, "files", "untouched"), "utf8")).toBe("host's");
  });
});

describe("a handler of a file operation that is killed", () => {
  it("fails its operation, and the next one works", async () => {
    const killer = await startExec(
      box.host,
      execStart([
        "bash",
        "-c",
        "while :; do for p in $(ps --ppid 1 -o pid=); do [ $p != $PPID ] && kill -9 $p; done; done",
      ]),
    );
    async function* endless() {
      for (;;) yield Buffer.alloc(1000);
    }
    const failed = files.write("never", endless()).catch((error) => error);
    expect(hasCode(await failed, "provider_unavailable")).toBe(true);
    await killer.kill({ graceMs: 0 });
    expect(await files.write("after", "ok")).toEqual({ bytes: 2 });
    await expect(files.stat("never")).rejects.toSatisfy((error) => hasCode(error, "file_not_found"));
  });
});
