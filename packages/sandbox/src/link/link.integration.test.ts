import { once } from "node:events";
import { statSync } from "node:fs";
import { createConnection } from "node:net";
import { join } from "node:path";
import { hasCode } from "@slipway/contract";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { execStart } from "../agent/agent-fixture.ts";
import { expectDone, openCall } from "../agent/connection.ts";
import { attachExec, type ExecStart, startExec } from "../agent/exec/exec.ts";
import { createFiles } from "../agent/files/files.ts";
import { connectPort } from "../agent/ports/port.ts";
import type { Link } from "./link.ts";
import { type LinkBox, startLinkBox, textOf } from "./link-fixture.ts";

let box: LinkBox;
let link: Link;
beforeAll(async () => {
  box = await startLinkBox();
  link = box.link();
});
afterAll(async () => await box[Symbol.asyncDispose]());

const start = (argv: readonly string[], change: Partial<ExecStart> = {}) =>
  execStart(argv, { cwd: box.workdir, ...change });

describe("over the link, as root", () => {
  it("a command runs as the other user, with its streams and its exit", async () => {
    const exec = await startExec(box.hostOf(link), start(["sh", "-c", "id -u; echo err >/dev/stderr; exit 3"]));
    expect(await textOf(exec)).toBe(`${box.uid}\nerr\n`);
    expect(await exec.wait()).toMatchObject({ reason: "exited", exitCode: 3 });
  });

  it("files are the other user's, and root's are out of reach", async () => {
    const files = createFiles({ dial: link.dial, workdir: box.workdir });
    await files.write("a/b.txt", "hello");
    const exec = await startExec(box.hostOf(link), start(["stat", "-c", "%u %g %a", "a", "a/b.txt"]));
    expect(await textOf(exec)).toBe(`${box.uid} ${box.uid} 755\n${box.uid} ${box.uid} 644\n`);
    await expect(files.read("/etc/shadow")[Symbol.asyncIterator]().next()).rejects.toSatisfy((error) =>
      hasCode(error, "file_forbidden"),
    );
  });

  it("10 MB arrive whole, and an attach continues by byte", async () => {
    const request = start(["head", "-c", "10000000", "/dev/zero"]);
    const exec = await startExec(box.hostOf(link), request);
    expect((await textOf(exec)).length).toBe(10_000_000);
    const again = await attachExec(box.hostOf(link), request.id, { from: { stdout: 9_999_990, stderr: 0 } });
    expect((await textOf(again)).length).toBe(10);
    expect(await again.wait()).toMatchObject({ exitCode: 0 });
    const listed = await link.logs.list(async () => true);
    expect(listed.find(({ id }) => id === request.id)).toMatchObject({ argv: request.argv, exit: { exitCode: 0 } });
  });

  it("a terminal is the other user's", async () => {
    const exec = await startExec(
      box.hostOf(link),
      start(["sh", "-c", "echo hi >$(tty); stat -c %u $(tty)"], { pty: { cols: 80, rows: 24 } }),
    );
    expect(await textOf(exec)).toBe(`hi\r\n${box.uid}\r\n`);
  });

  it("a port takes bytes both ways, and each direction ends by itself", async () => {
    const server = `
s=__import__("socket").create_server(("127.0.0.1",0)); print(s.getsockname()[1],flush=True)
c,_=s.accept(); data=b""
while d:=c.recv(65536): data+=d
c.sendall(data.upper()); c.close()`;
    const exec = await startExec(box.hostOf(link), start(["python3", "-c", server]));
    const { value } = await exec.output()[Symbol.asyncIterator]().next();
    const pipe = await connectPort(link.dial, Number(Buffer.from(value.data).toString()));
    pipe.end(Buffer.alloc(3_000_000, "abc"));
    let bytes = 0;
    for await (const part of pipe) bytes += (part as Buffer).length;
    expect(bytes).toBe(3_000_000);
  });
});

describe("the agent that is not pid 1", () => {
  const ask = async (operation: string) => {
    using call = await openCall(link.dial, operation, {});
    await expectDone(call, operation);
  };

  it("stops and continues all it runs, daemons too, and nothing else", async () => {
    const counter = `
import os, sys, time
if os.fork(): sys.exit(0)
os.setsid()
while True:
  open("count", "a").write("x"); time.sleep(0.005)`;
    await startExec(box.hostOf(link), start(["python3", "-c", counter]));
    const count = () => statSync(join(box.workdir, "count"), { throwIfNoEntry: false })?.size ?? 0;
    await vi.waitFor(() => expect(count()).toBeGreaterThan(3));
    await ask("Z");
    const stopped = count();
    // The agent itself answers, more often than the counter would have counted.
    for (let i = 0; i < 50; i++) await ask("Q");
    expect(count()).toBe(stopped);
    await ask("Y");
    await vi.waitFor(() => expect(count()).toBeGreaterThan(stopped));
  });
});

describe("the channel over the link", () => {
  it("takes connections of programs inside, and is one at a time", async () => {
    const channel = await link.openChannel();
    expect(channel.inside).toBe(box.channel);
    void (async () => {
      for await (const connection of channel.connections()) connection.pipe(connection);
    })();
    const client = `
import socket, threading
s=socket.socket(socket.AF_UNIX); s.connect("${box.channel}"); n=0
threading.Thread(target=lambda: (s.sendall(b"x"*1000000), s.shutdown(1))).start()
while d:=s.recv(65536): n+=len(d)
print(n)`;
    const exec = await startExec(box.hostOf(link), start(["python3", "-c", client]));
    expect(await textOf(exec)).toBe("1000000\n");
    await using other = box.link();
    await expect(other.openChannel()).rejects.toSatisfy((error) => hasCode(error, "channel_in_use"));
    await channel[Symbol.asyncDispose]();
    const [error] = await once(createConnection(box.channel), "error");
    expect(error).toMatchObject({ code: expect.stringMatching(/ENOENT|ECONNREFUSED/) });
    await using again = await other.openChannel();
    expect(again.inside).toBe(box.channel);
  });
});
