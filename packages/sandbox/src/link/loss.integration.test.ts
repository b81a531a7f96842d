import { spawn } from "node:child_process";
import { once } from "node:events";
import { hasCode } from "@slipway/contract";
import { afterAll, beforeAll, expect, onTestFinished, test, vi } from "vitest";
import { execStart } from "../agent/agent-fixture.ts";
import { attachExec, startExec } from "../agent/exec/exec.ts";
import { createFiles } from "../agent/files/files.ts";
import { createNetwork, type LinkBox, startLinkBox, textOf } from "./link-fixture.ts";

let box: LinkBox;
beforeAll(async () => {
  box = await startLinkBox();
});
afterAll(async () => await box[Symbol.asyncDispose]());

test("an exec's output survives cuts in mid-stream, byte for byte, and its exit is told", async () => {
  const network = createNetwork(box.port, 5);
  const link = box.link(network.open);
  const request = execStart(["sh", "-c", "for i in $(seq 30000); do echo line $i; done; exit 5"], { cwd: box.workdir });
  const exec = await startExec(box.hostOf(link), request);
  let text = "";
  let nextCut = 10_000;
  for await (const chunk of exec.output()) {
    if (chunk.type === "output_truncated") continue;
    text += Buffer.from(chunk.data).toString();
    if (text.length < nextCut) continue;
    network.cut();
    nextCut += 50_000;
  }
  expect(network.cuts).toBeGreaterThanOrEqual(3);
  expect(text).toBe(Array.from({ length: 30_000 }, (_, i) => `line ${i + 1}\n`).join(""));
  expect(await exec.wait()).toMatchObject({ exitCode: 5 });
});

test("a dial during a loss waits for the link to be back, or for its caller", async () => {
  const network = createNetwork(box.port, 0);
  const link = box.link(network.open);
  const files = createFiles({ dial: link.dial, workdir: box.workdir });
  await files.write("kept", "1");
  const states: string[] = [];
  link.onState((state) => states.push(state));
  network.setDown(true);
  await vi.waitFor(() => expect(states).toEqual(["lost"]));
  const aborted = files.write("aborted", "", { signal: AbortSignal.timeout(50) });
  await expect(aborted).rejects.toSatisfy((error) => hasCode(error, "aborted"));
  const writing = files.write("kept", "2");
  network.setDown(false);
  expect(await writing).toEqual({ bytes: 1 });
  expect(states).toEqual(["lost", "connected"]);
});

test("a command goes on while the host is away for long, and its handle with it afterwards", async () => {
  const network = createNetwork(box.port, 0);
  const link = box.link(network.open);
  const script = "for i in 1 2 3; do echo $i; sleep 0.3; done";
  // The log's reader asks when it has waited for the link for some time.
  const isAlive = vi.fn(async () => {
    network.setDown(false);
    return true;
  });
  const host = { ...box.hostOf(link), isAlive };
  const exec = await startExec(host, execStart(["sh", "-c", script], { cwd: box.workdir }));
  network.setDown(true);
  expect(await textOf(exec)).toBe("1\n2\n3\n");
  expect(isAlive).toHaveBeenCalled();
});

test("a host that is killed in mid-stream: another one attaches by byte, and gets the channel", async () => {
  const request = execStart(["sh", "-c", "for i in $(seq 20000); do echo line $i; done; exit 4"], { cwd: box.workdir });
  const code = `
    import { connect } from "node:net";
    import { startExec } from ${JSON.stringify(import.meta.resolve("../agent/exec/exec.ts"))};
    import { openLink } from ${JSON.stringify(import.meta.resolve("./link.ts"))};
    const open = async () => connect(${box.port}, "127.0.0.1");
    const { dial, logs, openChannel } = openLink({ open, key: Buffer.from("${box.key.toString("hex")}", "hex") });
    await openChannel();
    const exec = await startExec({ dial, logs, isAlive: async () => true }, ${JSON.stringify(request)});
    for await (const chunk of exec.output()) { console.log(chunk.offset + chunk.data.length); await new Promise((r) => setTimeout(r, 100)); }
  `;
  const child = spawn(process.execPath, ["--input-type=module", "-e", code], { stdio: ["ignore", "pipe", "inherit"] });
  onTestFinished(() => void child.kill("SIGKILL"));
  const [first] = await once(child.stdout, "data");
  const link = box.link();
  await expect(link.openChannel()).rejects.toSatisfy((error) => hasCode(error, "channel_in_use"));
  child.kill("SIGKILL");
  await once(child, "exit");
  const seen = Number.parseInt(String(first), 10);
  const exec = await attachExec(box.hostOf(link), request.id, { from: { stdout: seen, stderr: 0 } });
  const whole = Array.from({ length: 20_000 }, (_, i) => `line ${i + 1}\n`).join("");
  expect(await textOf(exec)).toBe(whole.slice(seen));
  expect(await exec.wait()).toMatchObject({ exitCode: 4 });
  await using channel = await link.openChannel();
  expect(channel.inside).toBe(box.channel);
});

/** Says numbers one after another, each until it has been heard. */
const speaker = `
import socket, sys, time
n = 0
while n < 300:
    try:
        s = socket.socket(socket.AF_UNIX); s.settimeout(5); s.connect(sys.argv[1])
        while n < 300:
            s.sendall(b"%d\\n" % n)
            if s.recv(1) != b"+": break
            n += 1
    except OSError: time.sleep(0.02)
print("said")`;

test("over a network that delays and cuts, the channel's programs get through, and nothing is invented", async () => {
  const network = createNetwork(box.port, 5);
  const link = box.link(network.open);
  await using channel = await link.openChannel();
  const heard: number[] = [];
  void (async () => {
    for await (const connection of channel.connections()) {
      connection.on("data", (data: Buffer) => {
        for (const line of data.toString().trimEnd().split("\n")) heard.push(Number(line));
        connection.write("+");
      });
    }
  })();
  const exec = await startExec(
    box.hostOf(link),
    execStart(["python3", "-c", speaker, channel.inside], { cwd: box.workdir }),
  );
  const saying = textOf(exec);
  const cutting = setInterval(() => network.cut(), 700);
  onTestFinished(() => clearInterval(cutting));
  expect(await saying).toBe("said\n");
  expect(network.cuts).toBeGreaterThanOrEqual(2);
  // Again only what was not acknowledged.
  const fresh = heard.filter((number, index) => number !== heard[index - 1]);
  expect(fresh).toEqual(Array.from({ length: 300 }, (_, i) => i));
});

test("the end comes at the deadline that a host has set, and everything inside with it", async () => {
  await using other = await startLinkBox();
  const link = other.link();
  const exec = await startExec(other.hostOf(link), execStart(["sleep", "100"], { cwd: other.workdir }));
  await link.keepUntil(Date.now() + 1000);
  await once(other.process, "exit");
  expect(other.process.exitCode).toBe(0);
  expect(await exec.wait()).toMatchObject({ reason: "lost" });
});

test("what an earlier life of the files has left running is lost, and the rest is kept", async () => {
  const first = await startLinkBox();
  const host = first.hostOf(first.link());
  const [ended, cut] = [
    ["echo", "kept"],
    ["sleep", "100"],
  ].map((argv) => execStart(argv, { cwd: first.workdir }));
  if (ended === undefined || cut === undefined) throw new Error("Two execs were wanted.");
  await (await startExec(host, ended)).wait();
  await startExec(host, cut);
  first.process.kill("SIGKILL");
  await once(first.process, "exit");
  await using second = await startLinkBox({ SLIPWAY_LINK_STATE: first.state });
  const link = second.link();
  expect((await link.logs.find(ended.id, true))?.exit).toMatchObject({ exitCode: 0 });
  expect((await link.logs.find(cut.id, true))?.exit).toMatchObject({ reason: "lost" });
  expect(await textOf(await attachExec(second.hostOf(link), ended.id))).toBe("kept\n");
  await first[Symbol.asyncDispose]();
});
