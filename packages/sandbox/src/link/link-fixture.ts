import { type ChildProcess, spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { chmodSync, chownSync, mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { connect, createServer, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Duplex } from "node:stream";
import type { ExecRequestInput } from "@slipway/contract";
import { execStart } from "../agent/agent-fixture.ts";
import { type ExecHost, startExec } from "../agent/exec/exec.ts";
import type { Exec } from "../provider.ts";
import { buildLink } from "./build.ts";
import { type Link, openLink } from "./link.ts";

/** The real link program with the real agent on this machine, as root, with a user of its own for what runs inside. For tests. */
export interface LinkBox extends AsyncDisposable {
  readonly dir: string;
  /** The user's. */
  readonly workdir: string;
  readonly state: string;
  readonly uid: number;
  readonly port: number;
  readonly key: Buffer;
  readonly process: ChildProcess;
  readonly channel: string;
  readonly environment: Readonly<Record<string, string>>;
  open(signal?: AbortSignal): Promise<Duplex>;
  link(open?: (signal: AbortSignal) => Promise<Duplex>): Link;
  hostOf(link: Link): ExecHost;
}

let lastUid = 61_200 + (process.pid % 1000) * 10;

export async function startLinkBox(environment: Readonly<Record<string, string>> = {}): Promise<LinkBox> {
  if (process.getuid?.() !== 0) throw new Error("The link needs root, to run what is inside as another user.");
  // @ts-expect-error plain JavaScript without types
  const { buildNative } = (await import("../../native/build.mjs")) as { buildNative(): { agent: string } };
  const { agent } = buildNative();
  const program = join(await buildLink(), "link.mjs");
  const uid = ++lastUid;
  const dir = mkdtempSync(join(tmpdir(), "slipway-link-"));
  chmodSync(dir, 0o755);
  const workdir = join(dir, "work");
  mkdirSync(workdir);
  chownSync(workdir, uid, uid);
  const [key, port, state, channel] = [
    randomBytes(32),
    await freePort(),
    join(dir, "state"),
    join(dir, "run/run.sock"),
  ];
  const child = spawn(process.execPath, [program], {
    stdio: ["ignore", "pipe", "inherit"],
    cwd: dir,
    env: {
      SLIPWAY_LINK_KEY: key.toString("hex"),
      SLIPWAY_LINK_PORT: String(port),
      SLIPWAY_LINK_UNTIL: String(Date.now() + 600_000),
      SLIPWAY_LINK_AGENT: agent,
      SLIPWAY_LINK_STATE: state,
      SLIPWAY_LINK_USER: `${uid}:${uid}`,
      SLIPWAY_LINK_CHANNEL: channel,
      ...environment,
    },
  });
  const closed = once(child, "close");
  const [first] = await Promise.race([once(child.stdout, "data"), closed.then(() => ["the link ended at once"])]);
  if (String(first) !== "slipway link ready\n") throw new Error(String(first));
  const open = async () => {
    const socket = connect({ port, host: "127.0.0.1", noDelay: true });
    await once(socket, "connect");
    return socket;
  };
  const links: Link[] = [];
  return {
    dir,
    workdir,
    state,
    uid,
    port,
    key,
    process: child,
    channel,
    environment,
    open,
    link(through = open) {
      const link = openLink({ open: through, key });
      links.push(link);
      return link;
    },
    hostOf: ({ dial, logs }) => ({
      dial,
      logs,
      isAlive: async () => child.exitCode === null && child.signalCode === null,
    }),
    async [Symbol.asyncDispose]() {
      await Promise.all(links.map((link) => link[Symbol.asyncDispose]()));
      child.kill("SIGTERM");
      await closed;
      rmSync(dir, { recursive: true, force: true, maxRetries: 10 });
    },
  };
}

export async function freePort(): Promise<number> {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as { port: number };
  server.close();
  await once(server, "close");
  return port;
}

/** Starts a command as a sandbox's `exec` does. */
export function execOn(box: LinkBox, link: Link, request: ExecRequestInput): Promise<Exec> {
  const { id, argv = [], env, background } = request;
  const { PATH } = execStart([]).env;
  return startExec(box.hostOf(link), {
    ...execStart(argv, { cwd: box.workdir, env: { PATH: PATH ?? "", HOME: box.workdir, ...env } }),
    ...(id && { id }),
    ...(background && { background }),
  });
}

/** All that a command writes to its standard output and error. */
export async function textOf(exec: Exec): Promise<string> {
  let text = "";
  for await (const chunk of exec.output())
    if (chunk.type !== "output_truncated") text += Buffer.from(chunk.data).toString();
  return text;
}

/** A network between host and sandbox: delays all bytes and cuts connections when it is told to. */
export function createNetwork(port: number, delayMs: number) {
  const open = new Set<Socket>();
  let isDown = false;
  const delayed = (from: Duplex, to: Duplex) => {
    from.on("data", (chunk) => setTimeout(() => to.destroyed || to.write(chunk), delayMs));
    from.on("close", () => to.destroy());
  };
  return {
    cuts: 0,
    async open(): Promise<Socket> {
      if (isDown) throw new Error("The network is down.");
      const far = connect(port, "127.0.0.1");
      const server = createServer((near) => {
        server.close();
        for (const socket of [near, far]) open.add(socket.on("error", () => socket.destroy()).setNoDelay());
        delayed(near, far);
        delayed(far, near);
        near.once("close", () => open.delete(near));
        far.once("close", () => open.delete(far));
      }).listen(0, "127.0.0.1");
      await once(server, "listening");
      const socket = connect((server.address() as { port: number }).port, "127.0.0.1");
      await once(socket, "connect");
      return socket;
    },
    cut() {
      this.cuts++;
      for (const socket of open) socket.destroy();
    },
    setDown(down: boolean) {
      isDown = down;
      if (down) this.cut();
    },
  };
}
