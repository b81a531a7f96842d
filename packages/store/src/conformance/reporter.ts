import { spawn } from "node:child_process";
import { once } from "node:events";
import process from "node:process";
import { createInterface } from "node:readline";
import type { BuildId } from "@slipway/contract";

const program = new URL("fixtures/reporter.ts", import.meta.url).pathname;

export interface ReporterTask {
  readonly url: string;
  readonly build: BuildId;
  readonly name: string;
  readonly calls: number;
  readonly eventsPerCall: number;
  /** It waits, when it is ready, until it is told to begin. */
  readonly held?: true;
  /** Whether it ends with a transaction that it leaves open. */
  readonly end?: "open";
}

/** A process of its own that reports events: see fixtures/reporter.ts. */
export interface Reporter {
  /** The numbers that it was told are kept. */
  readonly acknowledged: readonly number[];
  readonly busy: number;
  /** Answers when it has said a line of this kind. */
  said(word: "ready" | "ok" | "busy" | "open" | "done"): Promise<void>;
  begin(): void;
  /** Ends it in the middle of whatever it does. */
  kill(): Promise<void>;
  ended(): Promise<void>;
}

export function spawnReporter({ url, build, name, calls, eventsPerCall, held, end }: ReporterTask): Reporter {
  const args = [program, url, build, name, String(calls), String(eventsPerCall), end ?? ""];
  const child = spawn(process.execPath, args, { stdio: ["pipe", "pipe", "inherit"] });
  const begin = () => void child.stdin.end();
  if (!held) begin();
  const exit = once(child, "exit");
  const acknowledged: number[] = [];
  const heard = new Map<string, number>();
  const waiting = new Map<string, PromiseWithResolvers<void>>();
  const waitFor = (word: string) => {
    const gate = waiting.get(word) ?? Promise.withResolvers<void>();
    waiting.set(word, gate);
    return gate;
  };
  const lines = createInterface(child.stdout);
  lines.on("line", (line) => {
    const [word = "", value] = line.split(" ");
    heard.set(word, (heard.get(word) ?? 0) + 1);
    if (word === "ok") acknowledged.push(Number(value));
    waitFor(word).resolve();
  });
  const closed = once(lines, "close");
  return {
    acknowledged,
    begin,
    get busy() {
      return heard.get("busy") ?? 0;
    },
    said: (word) => waitFor(word).promise,
    async kill() {
      child.kill("SIGKILL");
      await Promise.all([exit, closed]);
    },
    async ended() {
      await closed;
      const [code] = await exit;
      if (code !== 0) throw new Error(`the reporter ended with ${code}`);
    },
  };
}
