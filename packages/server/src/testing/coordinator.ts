import { spawn } from "node:child_process";
import { once } from "node:events";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { fileURLToPath } from "node:url";
import type { BuildId } from "@slipway/contract";
import type { RestateSettings } from "../drive/restate/drive.ts";
import type { Speed } from "../simulated/clock.ts";

export interface CoordinatorSettings {
  readonly name: string;
  readonly databaseUrl: string;
  readonly redisUrl?: string | undefined;
  /** What drives builds; timers of the process when left out. */
  readonly restate?: RestateSettings | undefined;
  readonly worldSocket: string;
  readonly speed: Speed;
  readonly leaseMs: number;
}

/** A process of coordinator-fixture.ts. Its disposal ends it in order. */
export interface CoordinatorProcess extends AsyncDisposable {
  /** It drives builds. Fails when it ends before that. */
  readonly ready: Promise<void>;
  ring(build: BuildId): void;
  /** Fails when it has ended though nobody ended it. */
  check(): void;
  /** The end of what it has warned of. */
  readonly told: string;
  /** With -9. */
  kill(): Promise<void>;
}

const compileCache = join(tmpdir(), "slipway-test-compile-cache");
const program = fileURLToPath(new URL("coordinator-fixture.ts", import.meta.url));

export function startCoordinator(settings: CoordinatorSettings): CoordinatorProcess {
  // It is started often.
  const env = { ...process.env, NODE_COMPILE_CACHE: compileCache };
  const child = spawn(process.execPath, [program, JSON.stringify(settings)], { env });
  const exit = once(child, "exit");
  let told = "";
  child.stderr.on("data", (chunk: Buffer) => {
    told = (told + chunk.toString()).slice(-4000);
  });
  let isEnding = false;
  let failure: Error | undefined;
  const failed = exit.then(([code, signal]) => {
    failure = new Error(`the coordinator has ended by ${signal ?? code}: ${told}`);
    throw failure;
  });
  const ready = Promise.race([once(child.stdout, "data"), failed]).then(() => undefined);
  // Who does not wait for it may have killed it.
  ready.catch(() => {});
  // It may be gone by the time that it is told something.
  child.stdin.on("error", () => {});
  return {
    ready,
    get told() {
      return told;
    },
    ring: (build) => void child.stdin.write(`${build}\n`),
    check() {
      if (failure !== undefined && !isEnding) throw failure;
    },
    async kill() {
      isEnding = true;
      child.kill("SIGKILL");
      await exit;
    },
    async [Symbol.asyncDispose]() {
      isEnding = true;
      child.stdin.end();
      await exit;
    },
  };
}
