/**
 * The program beside the browser, in a sandbox of its own: `main.ts <socket> <app's port> <port>`. It lets browsers reach
 * the app through the socket, and starts one for each connection to its port: a line has its arguments, all that follows
 * is what whoever drives it and the browser say to each other. Pages may take over all that is in this sandbox.
 */
import { spawn } from "node:child_process";
import { createServer, type Socket } from "node:net";
import { pipeline, type Readable, type Writable } from "node:stream";
import { startRelay } from "./relay.ts";

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
      // It has ended by itself.
    }
  });
  pipeline(driver, commands, () => {});
  pipeline(answers, driver, () => {});
}

await startRelay(socket, Number(appPort));
createServer(serve).listen(Number(port), "127.0.0.1", () => process.stdout.write("ready\n"));
