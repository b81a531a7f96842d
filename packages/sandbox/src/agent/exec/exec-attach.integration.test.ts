import { spawn } from "node:child_process";
import { once } from "node:events";
import { appendFileSync, readFileSync, rmSync, symlinkSync, truncateSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { type ExecChunk, type ExecId, type ExecOffsets, hasCode, newId } from "@slipway/contract";
import fc from "fast-check";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Exec } from "../../provider.ts";
import { type AgentBox, execStart, startAgentBox } from "../agent-fixture.ts";
import { encodeFrame, frameType } from "../wire.ts";
import { attachExec, type ExecHost, startExec } from "./exec.ts";

let box: AgentBox;
beforeAll(async () => {
  box = await startAgentBox();
});
afterAll(() => box[Symbol.asyncDispose]());

interface Collected {
  readonly stdout: Buffer;
  readonly stderr: Buffer;
  readonly truncated: boolean;
}

async function collect(exec: Exec): Promise<Collected> {
  const parts: Record<ExecChunk["type"], Uint8Array[]> = { stdout: [], stderr: [], output_truncated: [] };
  for await (const chunk of exec.output())
    parts[chunk.type].push(chunk.type === "output_truncated" ? Buffer.alloc(0) : chunk.data);
  return {
    stdout: Buffer.concat(parts.stdout),
    stderr: Buffer.concat(parts.stderr),
    truncated: parts.output_truncated.length > 0,
  };
}

describe("a start whose id has a log that does not say yet what was started", () => {
  const begun = async () => {
    const first = execStart(["echo", "once"]);
    await collect(await startExec(box.host, first));
    const id = newId("exc");
    writeFileSync(join(box.logDir, id), "");
    const write = () => appendFileSync(join(box.logDir, id), readFileSync(join(box.logDir, first.id)));
    return { start: { ...first, id }, write };
  };

  it("waits for it, and attaches", async () => {
    const { start, write } = await begun();
    const starting = startExec(box.host, start);
    setTimeout(write, 200);
    expect((await collect(await starting)).stdout.toString()).toBe("once\n");
  });

  it("waits for it, and is refused where it is another command", async () => {
    const { start, write } = await begun();
    const starting = startExec(box.host, { ...start, argv: ["echo", "twice"] });
    setTimeout(write, 200);
    await expect(starting).rejects.toMatchObject({ code: "idempotency_conflict" });
  });
});

describe("attach", () => {
  it("at any offset of either stream gives exactly the rest", async () => {
    const start = execStart([
      "bash",
      "-c",
      "for i in $(seq 40); do head -c $((i * 37)) /dev/urandom | od; head -c $i /dev/urandom | od >&2; done; head -c 700000 /dev/zero",
    ]);
    const whole = await collect(await startExec(box.host, start));
    const offset = (size: number) => fc.oneof(fc.nat(size), fc.constantFrom(0, 1, size - 1, size));
    await fc.assert(
      fc.asyncProperty(offset(whole.stdout.length), offset(whole.stderr.length), async (stdout, stderr) => {
        const exec = await attachExec(box.host, start.id, { from: { stdout, stderr } });
        let next: ExecOffsets = { stdout, stderr };
        for await (const chunk of exec.output()) {
          if (chunk.type === "output_truncated") throw new Error("nothing was cut");
          expect(chunk.offset).toBe(next[chunk.type]);
          expect(
            Buffer.compare(chunk.data, whole[chunk.type].subarray(chunk.offset, chunk.offset + chunk.data.length)),
          ).toBe(0);
          next = { ...next, [chunk.type]: chunk.offset + chunk.data.length };
        }
        expect(next).toEqual({ stdout: whole.stdout.length, stderr: whole.stderr.length });
        expect((await exec.wait()).exitCode).toBe(0);
      }),
      { numRuns: 60 },
    );
  });

  it("beyond the end gives nothing but the exit", async () => {
    const start = execStart(["echo", "short"]);
    await (await startExec(box.host, start)).wait();
    const exec = await attachExec(box.host, start.id, { from: { stdout: 1000, stderr: 1000 } });
    expect((await collect(exec)).stdout.length).toBe(0);
    expect((await exec.wait()).stdoutBytes).toBe(6);
  });

  it("follows a running command, writes to it and signals it", async () => {
    const start = execStart(
      ["bash", "-c", "trap 'echo usr' USR1; echo up; read line; echo \"got $line\"; while :; do sleep 0.05; done"],
      { stdin: "open" },
    );
    await startExec(box.host, start);
    const exec = await attachExec(box.host, start.id);
    const output = exec.output()[Symbol.asyncIterator]();
    const line = async () => {
      const { value } = await output.next();
      return value.type === "output_truncated" ? "" : Buffer.from(value.data).toString();
    };
    expect(await line()).toBe("up\n");
    await exec.write("hello\n");
    expect(await line()).toBe("got hello\n");
    await exec.signal("SIGUSR1");
    expect(await line()).toBe("usr\n");
    await exec.kill({ graceMs: 0 });
    expect(await exec.wait()).toMatchObject({ reason: "killed" });
  });

  it("to nothing is refused", async () => {
    await expect(attachExec(box.host, newId("exc"))).rejects.toSatisfy((error) => hasCode(error, "exec_not_found"));
  });

  it("does not follow a link that stands in for a log", async () => {
    const id = newId("exc");
    symlinkSync("/etc/passwd", join(box.logDir, id));
    await expect(attachExec(box.host, id)).rejects.toThrow();
  });

  it("sees where the kept log was cut; the live reader sees everything", async () => {
    const start = execStart(["sh", "-c", "head -c 400000 /dev/zero"], { logLimitBytes: 150_000 });
    const live = await collect(await startExec(box.host, start));
    expect(live).toMatchObject({ truncated: false, stdout: { length: 400_000 } });
    const exec = await attachExec(box.host, start.id);
    const kept = await collect(exec);
    expect(kept.truncated).toBe(true);
    expect(kept.stdout.length).toBeLessThan(150_000);
    expect(await exec.wait()).toMatchObject({ reason: "exited", stdoutBytes: 400_000 });
  });
});

describe("an exec survives", () => {
  it("a caller that is killed in mid-stream: another one gets every byte and the exit", async () => {
    const start = execStart(["sh", "-c", "for i in $(seq 20000); do echo line $i; done; echo fin; exit 5"]);
    const code = `
      import { startExec } from ${JSON.stringify(import.meta.resolve("./exec.ts"))};
      import { dialAgent } from ${JSON.stringify(import.meta.resolve("../connection.ts"))};
      import { logsIn } from ${JSON.stringify(import.meta.resolve("./logs.ts"))};
      const host = { dial: dialAgent(${JSON.stringify(box.socketPath)}), logs: logsIn(${JSON.stringify(box.logDir)}), isAlive: async () => true };
      const exec = await startExec(host, ${JSON.stringify(start)});
      for await (const chunk of exec.output()) { console.log("chunk"); await new Promise((r) => setTimeout(r, 50)); }
    `;
    const child = spawn(process.execPath, ["--input-type=module", "-e", code], {
      stdio: ["ignore", "pipe", "inherit"],
    });
    await once(child.stdout, "data");
    child.kill("SIGKILL");
    await once(child, "exit");
    const exec = await attachExec(box.host, start.id);
    const { stdout } = await collect(exec);
    const lines = stdout.toString().trimEnd().split("\n");
    expect(lines.length).toBe(20_001);
    expect(lines.at(-2)).toBe("line 20000");
    expect((await exec.wait()).exitCode).toBe(5);
  });

  it("the cut of its own connection: the same handle goes on from the log", async () => {
    const sockets: import("node:stream").Duplex[] = [];
    const host: ExecHost = {
      ...box.host,
      dial: async () => {
        const socket = await box.dial();
        sockets.push(socket);
        return socket;
      },
    };
    const exec = await startExec(host, execStart(["sh", "-c", "for i in 1 2 3 4 5 6; do echo $i; sleep 0.1; done"]));
    let text = "";
    for await (const chunk of exec.output()) {
      if (chunk.type !== "output_truncated") text += Buffer.from(chunk.data).toString();
      if (text.includes("2")) sockets[0]?.destroy();
    }
    expect(text).toBe("1\n2\n3\n4\n5\n6\n");
    expect((await exec.wait()).exitCode).toBe(0);
  });
});

describe("a sandbox that is gone", () => {
  it("leaves its running execs lost, for those who wait and those who come later", async () => {
    await using other = await startAgentBox();
    const start = execStart(["sh", "-c", "echo before; sleep 100"]);
    const exec = await startExec(other.host, start);
    const output = exec.output()[Symbol.asyncIterator]();
    await output.next();
    await other.kill();
    expect((await output.next()).done).toBe(true);
    expect(await exec.wait()).toMatchObject({ reason: "lost", exitCode: null, stdoutBytes: 7 });
    const later = await attachExec(other.host, start.id);
    expect((await collect(later)).stdout.toString()).toBe("before\n");
    expect(await later.wait()).toMatchObject({ reason: "lost" });
    expect(await other.host.logs.list(other.host.isAlive)).toMatchObject([{ id: start.id, exit: { reason: "lost" } }]);
  });

  it("with its logs leaves them lost all the same", async () => {
    await using other = await startAgentBox();
    const exec = await startExec(other.host, execStart(["sleep", "100"]));
    rmSync(other.logDir, { recursive: true });
    await other.kill();
    expect(await exec.wait()).toMatchObject({ reason: "lost" });
    expect(await other.host.logs.list(other.host.isAlive)).toEqual([]);
  });
});

describe("the list of execs", () => {
  it("has arguments, times and exits, and is not fooled by output that looks like an exit", async () => {
    await using other = await startAgentBox();
    const done = execStart(["sh", "-c", "exit 3"], { background: true });
    await (await startExec(other.host, done)).wait();
    const forged = Buffer.alloc(38);
    forged.write("x", 0);
    forged.writeUInt32LE(33, 1);
    const liar = execStart([
      "sh",
      "-c",
      `printf '${[...forged].map((byte) => `\\${byte.toString(8).padStart(3, "0")}`).join("")}'; sleep 100`,
    ]);
    const exec = await startExec(other.host, liar);
    await exec.output()[Symbol.asyncIterator]().next();
    writeFileSync(join(other.logDir, "not-an-exec"), "");
    expect(await other.host.logs.list(other.host.isAlive)).toMatchObject([
      { id: done.id, argv: done.argv, background: true, exit: { exitCode: 3 } },
      { id: liar.id, argv: liar.argv, background: false, exit: null },
    ]);
  });

  it("stops at the first exit of a log", async () => {
    const start = execStart(["true"]);
    await (await startExec(box.host, start)).wait();
    const path = join(box.logDir, start.id);
    const exit = Buffer.from(readFileSync(path).subarray(-38));
    exit.writeUInt8(4, 13);
    appendFileSync(path, exit);
    const listed = (await box.host.logs.list(box.host.isAlive)).find(({ id }: { id: ExecId }) => id === start.id);
    expect(listed?.exit?.reason).toBe("exited");
    expect((await (await attachExec(box.host, start.id)).wait()).reason).toBe("exited");
  });
});

describe("a log whose last frame is torn", () => {
  it("is read up to that frame, and on from there when the frame has been replaced by the exit", async () => {
    const id = newId("exc");
    const path = join(box.logDir, id);
    const whole = encodeFrame(frameType.stdout, Buffer.from("whole"));
    const torn = encodeFrame(frameType.stdout, Buffer.alloc(1000, "t")).subarray(0, 20);
    writeFileSync(path, Buffer.concat([whole, torn]));
    const exec = await attachExec(box.host, id);
    const output = exec.output()[Symbol.asyncIterator]();
    expect((await output.next()).value).toMatchObject({ offset: 0, data: Buffer.from("whole") });
    const rest = output.next();
    truncateSync(path, whole.length);
    const exit = Buffer.alloc(33);
    exit.writeUInt8(4, 8);
    appendFileSync(path, encodeFrame(frameType.exit, exit));
    expect((await rest).done).toBe(true);
    expect(await exec.wait()).toMatchObject({ reason: "lost" });
  });
});
