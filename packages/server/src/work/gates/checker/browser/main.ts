/**
 * The program in the browser's sandbox: `main.ts <socket> <app's port> <port>`. It lets browsers reach the app through the
 * socket, and starts one browser per connection to its port: the first line has its arguments, the rest is the
 * conversation of its driver with it. Pages may take over everything in this sandbox.
 */
import { spawn } from "node:child_process";
import { connect, createServer, type Socket } from "node:net";
import { pipeline, type Readable, type Writable } from "node:stream";

const [socket = "", appPort = "", port = ""] = process.argv.slice(2);
const program = "/usr/bin/chromium";

function serve(driver: Socket): void {
  let head = Buffer.alloc(0);
  driver.on("error", () => {});
  const listen = (part: Buffer) => {
    head = Buffer.concat([head, part]);
    const end = head.indexOf("\n");
    if (end === -1) return;
    driver.pause().off("data", listen);
    driver.unshift(head.subarray(end + 1));
    start(driver, JSON.parse(head.toString("utf8", 0, end)) as string[]);
  };
  driver.on("data", listen);
}

function start(driver: Socket, argv: readonly string[]): void {
  const browser = spawn(program, argv, { stdio: ["ignore", "ignore", "ignore", "pipe", "pipe"], detached: true });
  const [, , , commands, answers] = browser.stdio as unknown as [null, null, null, Writable, Readable];
  browser.on("error", () => driver.destroy());
  browser.on("exit", () => driver.destroySoon());
  driver.on("close", () => {
    try {
      if (browser.pid !== undefined) process.kill(-browser.pid, "SIGKILL");
    } catch {
      // It has already exited.
    }
  });
  pipeline(driver, commands, () => {});
  pipeline(answers, driver, () => {});
}

/** Listens where the browser looks for the app, and pipes each connection to the host's socket. */
async function startRelay(): Promise<void> {
  const server = createServer({ allowHalfOpen: true }, (browser) => {
    const host = connect({ path: socket, allowHalfOpen: true });
    join(browser, host);
    join(host, browser);
  });
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject).listen(Number(appPort), "127.0.0.1", resolve);
  });
}

function join(from: Socket, to: Socket): void {
  from.pipe(to);
  from.on("error", () => to.destroy());
  from.on("close", () => to.destroySoon());
}

await startRelay();
createServer(serve).listen(Number(port), "127.0.0.1", () => process.stdout.write("ready\n"));
