import { type ChildProcessByStdio, spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import type { Readable } from "node:stream";
import { fileURLToPath } from "node:url";

const program = fileURLToPath(new URL("publish-fixture.ts", import.meta.url));

export interface Publisher {
  /** Resolves when the process has said that so many messages are acknowledged. */
  acknowledged(count: number): Promise<void>;
  /** What was acknowledged when the process was gone. */
  readonly ended: Promise<readonly string[]>;
  kill(): void;
}

export function startPublisher(argv: readonly string[]): Publisher {
  const child = spawn(process.execPath, [program, ...argv], { stdio: ["ignore", "pipe", "inherit"] });
  const keys: string[] = [];
  const waiting = new Map<number, () => void>();
  const lines = createInterface({ input: child.stdout }).on("line", (key) => {
    keys.push(key);
    waiting.get(keys.length)?.();
  });
  return {
    acknowledged: (count) =>
      keys.length >= count ? Promise.resolve() : new Promise((resolve) => waiting.set(count, resolve)),
    ended: Promise.all([once(lines, "close"), exitOf(child)]).then(() => keys),
    kill: () => void child.kill("SIGKILL"),
  };
}

async function exitOf(child: ChildProcessByStdio<null, Readable, null>): Promise<void> {
  const [code, signal] = await once(child, "exit");
  if (code !== 0 && signal !== "SIGKILL") throw new Error(`the publisher ended with ${code ?? signal}`);
}
