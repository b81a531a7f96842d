import { type ChildProcessByStdio, spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { createServer, type Socket } from "node:net";
import { SlipwayError } from "@slipway/contract";
import { listenAt } from "../../../unix-socket.ts";
import { joinArguments } from "./launch.ts";

/**
 * Starts `slipway-launch` through a small process that forks: a fork of Node blocks it for milliseconds. The other
 * side is native/launch/serve.c. The service ends with this process; what it has started does not.
 */
export interface LaunchService extends AsyncDisposable {
  /** Of the first service process, unless that could not be started. */
  readonly pid: number | undefined;
  /** Starts `slipway-launch` with these arguments. Restarts a service that has died. */
  run(args: readonly string[]): Promise<Launched>;
}

export interface Launched {
  /** Standard input; standard output and error together, as UTF-8. Paused. Closes when the launch has ended. */
  readonly connection: Socket;
  /** Kills its process group, unless the connection is closed. */
  kill(): void;
}

/** The last line of a successful launch. */
export const doneLine = "done\n";

export interface LaunchServiceOptions {
  /** The path of `slipway-launch`. */
  readonly program: string;
  /** Launches connect to it. In a directory that only this user can write to. */
  readonly socketPath: string;
  /** Gets the pid of a service that replaces a dead one, before that launches anything. */
  readonly onRestart?: (pid: number) => Promise<void>;
}

type Waiting = Map<string, PromiseWithResolvers<Launched>>;
type ServiceProcess = ChildProcessByStdio<Socket, null, null>;

const mostRequestBytes = 2 * 1024 * 1024;
const answerLimitMs = 60_000;

export async function startLaunchService({
  program,
  socketPath,
  onRestart = async () => {},
}: LaunchServiceOptions): Promise<LaunchService> {
  const waiting: Waiting = new Map();
  const server = createServer({ allowHalfOpen: true }, (socket) => welcome(socket, waiting));
  await listenAt(server, socketPath, 0o600);
  // Only pending requests keep this process alive.
  server.unref();
  let service: ServiceProcess | null = null;
  let ready = Promise.resolve();
  const startProcess = () => {
    const started = spawnService(program, socketPath, (error) => {
      if (service !== started) return;
      service = null;
      for (const { reject } of waiting.values()) reject(error);
    });
    return started;
  };
  const restartProcess = () => {
    const started = startProcess();
    if (started.pid !== undefined) ready = onRestart(started.pid);
    return started;
  };
  service = startProcess();
  return {
    pid: service.pid,
    async run(args) {
      const name = randomBytes(16).toString("hex");
      const request = requestOf([name, ...args]);
      service ??= restartProcess();
      const { stdin } = service;
      const answer = Promise.withResolvers<Launched>();
      waiting.set(name, answer);
      server.ref();
      const timer = setTimeout(() => answer.reject(unavailable("does not answer")), answerLimitMs).unref();
      ready.then(() => stdin.write(request), answer.reject);
      try {
        return await answer.promise;
      } finally {
        clearTimeout(timer);
        waiting.delete(name);
        if (waiting.size === 0) server.unref();
      }
    },
    async [Symbol.asyncDispose]() {
      server.close();
      if (service === null) return;
      service.ref();
      service.stdin.end();
      await once(service, "exit");
    },
  };
}

function spawnService(program: string, socketPath: string, onEnd: (error: SlipwayError) => void): ServiceProcess {
  // The service itself has no connection: its errors go to this process's standard error.
  const stdio: ["pipe", "ignore", "inherit"] = ["pipe", "ignore", "inherit"];
  const child = spawn(program, ["serve", socketPath], { stdio, detached: true, env: {} }) as ServiceProcess;
  child.on("error", (cause) => onEnd(new SlipwayError("component_missing", `${program}: ${cause.message}`, { cause })));
  child.on("exit", (code, signal) => onEnd(unavailable(`ended by ${signal ?? `exit code ${code}`}`)));
  // `exit` reports its end.
  child.stdin.on("error", () => {});
  child.stdin.unref();
  child.unref();
  return child;
}

function unavailable(what: string): SlipwayError {
  return new SlipwayError("provider_unavailable", `The launch service ${what}.`);
}

function requestOf(args: readonly string[]): Buffer {
  const text = Buffer.from(joinArguments(args));
  if (text.length > mostRequestBytes) {
    throw new SlipwayError("internal", `Arguments of ${text.length} bytes exceed the limit of a launch.`);
  }
  const length = Buffer.alloc(4);
  length.writeUInt32LE(text.length);
  return Buffer.concat([length, text]);
}

/** A launch first writes its name and pid, in one write. It leads a process group. */
function welcome(socket: Socket, waiting: Waiting): void {
  socket.on("error", () => socket.destroy());
  socket.setEncoding("utf8").once("data", (text: string) => {
    const [line, name, pid] = /^(\w+) (\d+)\n/.exec(text) ?? [];
    const answer = name === undefined ? undefined : waiting.get(name);
    if (line === undefined || answer === undefined) return void socket.destroy();
    socket.pause();
    if (text.length > line.length) socket.unshift(text.slice(line.length));
    socket.once("end", () => socket.destroy());
    answer.resolve({
      connection: socket,
      kill() {
        if (!socket.destroyed) killIfThere(-Number(pid));
      },
    });
  });
}

export function killIfThere(pid: number): void {
  try {
    process.kill(pid, "SIGKILL");
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ESRCH") throw error;
  }
}
