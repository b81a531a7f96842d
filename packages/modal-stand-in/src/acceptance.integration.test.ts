import { once } from "node:events";
import { readFileSync } from "node:fs";
import { get } from "node:https";
import { connect, type Socket } from "node:net";
import { buffer, text } from "node:stream/consumers";
import { type App, type Image, Probe, type Sandbox, type SandboxCreateParams } from "modal";
import { afterAll, beforeAll, expect, onTestFinished, test, vi } from "vitest";
import { type Setup, setUp } from "./testing.ts";

let setup: Setup;
let app: App;
let image: Image;
beforeAll(async () => {
  setup = await setUp();
  app = await setup.modal.apps.fromName("acceptance", { createIfMissing: true });
  image = await setup.modal.images.fromRegistry("debian:bookworm").build(app);
});
afterAll(async () => {
  expect(setup.standIn.running()).toEqual([]);
  await setup[Symbol.asyncDispose]();
});

async function create(params: SandboxCreateParams = {}, of: Image = image): Promise<Sandbox> {
  const sandbox = await setup.modal.sandboxes.create(app, of, params);
  onTestFinished(async () => void (await sandbox.terminate()));
  return sandbox;
}

async function output(sandbox: Sandbox, command: string[], params = {}): Promise<[string, string, number]> {
  const process = await sandbox.exec(command, params);
  return [await process.stdout.readText(), await process.stderr.readText(), await process.wait()];
}

test("a command's streams, input, environment, directory and exit code", async () => {
  const sandbox = await create({ env: { A: "1" }, workdir: "/made/for/it" });
  const script = "echo $A $B; pwd; echo no >&2; cat; exit 7";
  const process = await sandbox.exec(["sh", "-c", script], { env: { B: "2" } });
  await process.stdin.writeText("typed\n");
  await process.stdin.writeText("twice\n");
  await process.stdin.close();
  expect(await process.stdout.readText()).toBe("1 2\n/made/for/it\ntyped\ntwice\n");
  expect(await process.stderr.readText()).toBe("no\n");
  expect(await process.wait()).toBe(7);
  expect(await output(sandbox, ["pwd"], { workdir: "/tmp" })).toEqual(["/tmp\n", "", 0]);
  expect(await output(sandbox, ["sh", "-c", "kill -9 $$"])).toEqual(["", "", 137]);
  expect((await output(sandbox, ["no-such-program"]))[2]).toBe(127);
  expect(await output(sandbox, ["sh", "-c", "echo out; echo err >&2"], { stdout: "ignore" })).toEqual(["", "err\n", 0]);
});

test("a command has a terminal when it asks for one, and ends at its timeout", async () => {
  const sandbox = await create();
  const [terminal] = await output(sandbox, ["sh", "-c", "tty; stty size"], { pty: true });
  expect(terminal).toMatch(/^\/dev\/pts\/\d+\r\n24 80\r\n$/);
  const process = await sandbox.exec(["sleep", "1000"], { timeoutMs: 1000 });
  expect(await process.wait().catch((error: Error) => error.message)).toSatisfy(
    (end: unknown) => end === 137 || /Deadline exceeded/.test(String(end)),
  );
  await vi.waitFor(async () => expect((await output(sandbox, ["pgrep", "sleep"]))[2]).toBe(1));
});

test("20 MB of output arrive whole, also when connections are cut meanwhile", async () => {
  const sandbox = await create();
  const process = await sandbox.exec(["sh", "-c", "yes 0123456789abcde | head -c 20000000"], { mode: "binary" });
  let bytes = 0;
  for await (const piece of process.stdout) {
    if (bytes < 4_000_000 && bytes + piece.length >= 4_000_000) setup.standIn.faults.cutNow();
    bytes += piece.length;
  }
  expect(bytes).toBe(20_000_000);
  expect(await process.wait()).toBe(0);
});

test("files are written, read, listed, described, watched and removed", async () => {
  const { filesystem } = await create();
  const bytes = new Uint8Array(3_000_000).map((_, at) => at % 251);
  await filesystem.writeBytes(bytes, "/work/deep/data");
  expect(Buffer.compare(await filesystem.readBytes("/work/deep/data"), bytes)).toBe(0);
  await filesystem.writeText("words", "/work/deep/text");
  expect(await filesystem.readText("/work/deep/text")).toBe("words");
  const names = (await filesystem.listFiles("/work/deep")).map(({ name, type, size }) => [name, type, size]);
  expect(names).toEqual([
    ["data", "file", 3_000_000],
    ["text", "file", 5],
  ]);
  expect(await filesystem.stat("/work/deep")).toMatchObject({ type: "directory", owner: "root", permissions: "0755" });
  await filesystem.makeDirectory("/work/made");
  const changes = filesystem.watch("/work/made", { filter: ["Create"] })[Symbol.asyncIterator]();
  const change = changes.next();
  await vi.waitFor(async () => {
    await filesystem.writeText("", `/work/made/${performance.now()}`);
    expect(await Promise.race([change, null])).not.toBeNull();
  });
  expect((await change).value).toMatchObject({ eventType: "Create" });
  await changes.return?.(undefined);
  await expect(filesystem.readText("/nowhere")).rejects.toMatchObject({ name: "SandboxFilesystemNotFoundError" });
  await expect(filesystem.readText("/work")).rejects.toMatchObject({ name: "SandboxFilesystemIsADirectoryError" });
  await expect(filesystem.remove("/work")).rejects.toMatchObject({ name: "SandboxFilesystemDirectoryNotEmptyError" });
  await filesystem.remove("/work", { recursive: true });
  await expect(filesystem.listFiles("/work")).rejects.toMatchObject({ name: "SandboxFilesystemNotFoundError" });
});

test("a sandbox ends with its command, whose streams can still be read", async () => {
  const sandbox = await create({ command: ["sh", "-c", "cat; echo done >&2; exit 3"] });
  expect(await sandbox.poll()).toBeNull();
  await sandbox.stdin.writeText("to the end");
  await sandbox.stdin.close();
  expect(await sandbox.wait()).toBe(3);
  expect(await sandbox.poll()).toBe(3);
  expect(await sandbox.stdout.readText()).toBe("to the end");
  expect(await sandbox.stderr.readText()).toBe("done\n");
  const killed = await create({ command: ["sh", "-c", "kill -15 $$"] });
  expect(await killed.wait()).toBe(143);
});

test("without a command it stays until it is terminated, and then runs nothing", async () => {
  const sandbox = await create();
  const sleeping = await sandbox.exec(["sleep", "1000"]);
  expect(await sandbox.terminate({ wait: true })).toBe(137);
  expect(await sleeping.wait()).toBe(137);
  await expect(sandbox.exec(["true"])).rejects.toThrow();
});

test("names are taken while a sandbox runs; names and ids lead to it from another client", async () => {
  const sandbox = await create({ name: "only-one" });
  await expect(create({ name: "only-one" })).rejects.toMatchObject({ name: "AlreadyExistsError" });
  const named = await setup.modal.sandboxes.fromName("acceptance", "only-one");
  expect(named.sandboxId).toBe(sandbox.sandboxId);
  expect(await output(named, ["echo", "again"])).toEqual(["again\n", "", 0]);
  await sandbox.terminate();
  expect((await create({ name: "only-one" })).sandboxId).not.toBe(sandbox.sandboxId);
  expect(await named.poll()).toBe(137);
});

test("a tunnel carries TLS to a port inside, with a certificate of the stand-in's authority", async () => {
  const server = "require('http').createServer((q,r)=>r.end('inside '+q.url)).listen(8471,'127.0.0.1')";
  const sandbox = await create({
    command: ["node", "-e", server],
    encryptedPorts: [8471],
    readinessProbe: Probe.withTcp(8471),
  });
  await sandbox.waitUntilReady(60_000);
  const { url } = (await sandbox.tunnels())[8471] ?? { url: "" };
  expect(await fetchText(`${url}/path`, readFileSync(setup.standIn.caFile))).toBe("inside /path");
  await expect(fetchText(url)).rejects.toThrow(/certificate/);
  setup.standIn.faults.setLatency({ tunnelMs: 50 });
  onTestFinished(() => setup.standIn.faults.clear());
  expect(await fetchText(`${url}/late`, readFileSync(setup.standIn.caFile))).toBe("inside /late");
  await sandbox.terminate();
  await expect(fetchText(url, readFileSync(setup.standIn.caFile))).rejects.toThrow(/ECONNREFUSED/);
});

test("a tunnel's connections are cut and stalled on order, and are never short of a byte otherwise", async () => {
  const echo = "require('net').createServer({allowHalfOpen:true},(s)=>s.pipe(s)).listen(9000,'127.0.0.1')";
  const sandbox = await create({
    command: ["node", "-e", echo],
    unencryptedPorts: [9000],
    readinessProbe: Probe.withTcp(9000),
  });
  await sandbox.waitUntilReady(60_000);
  const { faults } = setup.standIn;
  onTestFinished(() => faults.clear());
  const { unencryptedPort = 0 } = (await sandbox.tunnels())[9000] ?? {};
  const dial = (allowHalfOpen = false) => {
    const socket = connect({ port: unencryptedPort, host: "127.0.0.1", allowHalfOpen });
    // A connection that is cut may say so.
    return socket.on("error", () => {});
  };
  const closed = (socket: Socket) => new Promise((resolve) => socket.on("close", resolve));
  const sent = Buffer.alloc(4_000_000, "0123456789");
  faults.setLatency({ tunnelMs: 20 });
  const echoing = dial(true);
  const answer = buffer(echoing);
  echoing.write(sent.subarray(0, 2_000_000), () => faults.setLatency({ tunnelMs: 1 }));
  echoing.end(sent.subarray(2_000_000));
  expect(Buffer.compare(await answer, sent)).toBe(0);

  const cut = dial();
  cut.write("hello");
  await once(cut, "data");
  const isCut = closed(cut);
  faults.cutTunnels(sandbox.sandboxId);
  await isCut;

  const stalled = dial();
  stalled.write("hello");
  await once(stalled, "data");
  faults.stallTunnels(true);
  const heard: string[] = [];
  stalled.on("data", (data) => heard.push(data.toString()));
  stalled.write("lost");
  await output(sandbox, ["true"]);
  const isOver = closed(stalled);
  await vi.waitFor(() => {
    // Until a piece is on its way.
    stalled.write("lost, too");
    faults.stallTunnels(false);
    faults.stallTunnels(true);
    expect(stalled.destroyed || stalled.readyState !== "open").toBe(true);
  });
  await isOver;
  expect(heard).toEqual([]);
});

test("a connect token opens a port to its holder alone", async () => {
  const server = "require('http').createServer((q,r)=>r.end('for '+q.headers['x-verified-user-data'])).listen(8080)";
  const sandbox = await create({ command: ["node", "-e", server], readinessProbe: Probe.withExec(["true"]) });
  await sandbox.waitUntilReady(60_000);
  const { url, token } = await sandbox.createConnectToken({ userMetadata: "ann" });
  const ask = (authorization: string) => fetch(url, { headers: { authorization } });
  await vi.waitFor(async () => expect(await (await ask(`Bearer ${token}`)).text()).toBe("for ann"));
  expect((await ask("Bearer other")).status).toBe(401);
});

test("a snapshot of the files is an image, with a time to live when it is given one", async () => {
  const sandbox = await create();
  await sandbox.filesystem.writeText("kept", "/srv/kept");
  const [forEver, short] = [
    await sandbox.snapshotFilesystem({ ttlMs: null }),
    await sandbox.snapshotFilesystem({ ttlMs: 60_000 }),
  ];
  await sandbox.terminate();
  const next = await create({}, await setup.modal.images.fromId(forEver.imageId));
  expect(await next.filesystem.readText("/srv/kept")).toBe("kept");
  await next.terminate();
  await setup.standIn.clock.advance(61_000);
  await expect(create({}, short)).rejects.toThrow(/has expired/);
  await setup.modal.images.delete(forEver.imageId);
  await expect(setup.modal.images.fromId(forEver.imageId)).rejects.toMatchObject({ name: "NotFoundError" });
});

test("a directory's snapshot is mounted, and unmounted", async () => {
  const sandbox = await create();
  await sandbox.filesystem.writeText("mine", "/from/file");
  const snapshot = await sandbox.snapshotDirectory("/from");
  await sandbox.filesystem.writeText("before", "/to/file");
  await sandbox.mountImage("/to", snapshot);
  expect(await sandbox.filesystem.readText("/to/file")).toBe("mine");
  await sandbox.unmountImage("/to");
  expect(await sandbox.filesystem.readText("/to/file")).toBe("before");
});

test("the steps of a Dockerfile run, once for the same steps, and one that fails is told with its output", async () => {
  const { images } = setup.modal;
  const steps = ["ENV GREETING=hello", "WORKDIR /app", "RUN echo $GREETING $TOKEN > said"];
  const build = (env: Record<string, string>) =>
    images.fromRegistry("debian").dockerfileCommands(steps, { env }).build(app);
  const built = await build({ TOKEN: "t" });
  expect((await build({ TOKEN: "t" })).imageId).toBe(built.imageId);
  const sandbox = await create({}, built);
  expect(await output(sandbox, ["sh", "-c", "pwd; cat said; echo $GREETING:$TOKEN"])).toEqual([
    "/app\nhello t\nhello:\n",
    "",
    0,
  ]);
  const broken = images.fromRegistry("debian").dockerfileCommands(["RUN echo the reason >&2; exit 4"]);
  await expect(broken.build(app)).rejects.toThrow(/exited with code 4\nthe reason/);
});

test("apt has what this machine has installed, and says so otherwise", async () => {
  const apt = (name: string) =>
    setup.modal.images
      .fromRegistry("debian")
      .dockerfileCommands([`RUN apt-get update && apt-get install -y --no-install-recommends ${name}`])
      .build(app);
  await apt("coreutils bash");
  await expect(apt("no-such-package")).rejects.toThrow(/Unable to locate package no-such-package.*this machine/s);
});

test("secrets reach a sandbox and a command, by name and by value", async () => {
  const { modal, standIn } = setup;
  standIn.addSecret("stored", { STORED: "s3" });
  await expect(modal.secrets.fromName("stored", { requiredKeys: ["OTHER"] })).rejects.toThrow(/missing key/);
  const secrets = [await modal.secrets.fromName("stored"), await modal.secrets.fromObject({ GIVEN: "g" })];
  const sandbox = await create({ secrets });
  const own = { secrets: [await modal.secrets.fromObject({ OWN: "o" })] };
  expect(await output(sandbox, ["printenv", "STORED", "GIVEN", "OWN"], own)).toEqual(["s3\ng\no\n", "", 0]);
});

test("a volume keeps what is committed to it, for others after their reload", async () => {
  const volume = await setup.modal.volumes.fromName("shared", { createIfMissing: true });
  const volumes = { "/mnt/shared": volume };
  const [writer, reader] = [await create({ volumes }), await create({ volumes })];
  await output(writer, ["sh", "-c", "mkdir -p /mnt/shared/sub && echo one > /mnt/shared/sub/file"]);
  await writer.reloadVolumes();
  await expect(reader.filesystem.readText("/mnt/shared/sub/file")).rejects.toThrow();
  await reader.reloadVolumes();
  expect(await reader.filesystem.readText("/mnt/shared/sub/file")).toBe("one\n");
  await output(writer, [
    "sh",
    "-c",
    "rm -r /mnt/shared/sub && ln -s /etc /mnt/shared/link && echo two > /mnt/shared/b",
  ]);
  await writer.terminate();
  const part = await create({ volumes: { "/part": volume.withMountOptions({ subPath: "/b", readOnly: true }) } });
  expect(await output(part, ["ls", "/part"])).toEqual(["", "", 0]);
  const last = await create({ volumes });
  expect(await output(last, ["sh", "-c", "ls /mnt/shared; readlink /mnt/shared/link; cat /mnt/shared/b"])).toEqual([
    "b\nlink\n/etc\ntwo\n",
    "",
    0,
  ]);
});

test("a sandbox reaches only what its network policy names, this machine never", async () => {
  const reach = async (sandbox: Sandbox) => {
    const script = `node -e 'require("net").connect(${new URL(setup.standIn.url).port},"127.0.0.1",()=>{console.log("in")}).on("error",(e)=>console.log(e.code))'`;
    return (await output(sandbox, ["sh", "-c", script]))[0];
  };
  const open = await create();
  expect(await reach(open)).toBe("ECONNREFUSED\n");
  const blocked = await create({ blockNetwork: true });
  expect(await reach(blocked)).toBe("ECONNREFUSED\n");
  await open.updateNetworkPolicy({ outboundCidrAllowlist: ["192.0.2.0/24"], outboundDomainAllowlist: ["example.com"] });
  await expect(
    open.updateNetworkPolicy({ outboundCidrAllowlist: ["nonsense"], outboundDomainAllowlist: [] }),
  ).rejects.toThrow("Invalid CIDR: nonsense");
});

test("a readiness probe that never succeeds is a timeout", async () => {
  const sandbox = await create({ readinessProbe: Probe.withExec(["false"], { intervalMs: 50 }) });
  await expect(sandbox.waitUntilReady(500)).rejects.toThrow();
  const without = await create();
  await expect(without.waitUntilReady(500)).rejects.toThrow(/no readiness probe/);
});

async function fetchText(url: string, ca?: Buffer): Promise<string> {
  const { promise, resolve, reject } = Promise.withResolvers<string>();
  const request = get(url, { agent: false, ...(ca !== undefined && { ca }) }, (response) => resolve(text(response)));
  request.on("error", reject);
  return await promise;
}
