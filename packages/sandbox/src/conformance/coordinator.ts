import { spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import type { CreateSandboxInput, ExecId, ExecRequestInput, SandboxId } from "@slipway/contract";
import type { SandboxProvider } from "../provider.ts";

/** What the suite has another coordinator do. Each task is answered by one report. */
export type CoordinatorTask =
  | { readonly type: "create"; readonly request: CreateSandboxInput }
  /** Reports when so many bytes of stdout have arrived; goes on reading. */
  | { readonly type: "stream"; readonly sandbox: SandboxId; readonly exec: ExecRequestInput; readonly bytes: number }
  /** Reports when the first bytes of a file have been sent; never sends the last. */
  | { readonly type: "write"; readonly sandbox: SandboxId; readonly path: string }
  /** Reports when it has opened the host channel; keeps it. */
  | { readonly type: "openChannel"; readonly sandbox: SandboxId };

export type CoordinatorReport =
  | { readonly type: "created"; readonly sandbox: SandboxId }
  | { readonly type: "streamed"; readonly exec: ExecId; readonly bytes: number }
  | { readonly type: "writing" }
  | { readonly type: "listening" };

export interface OtherCoordinator {
  send(task: CoordinatorTask): Promise<CoordinatorReport>;
  /** Ends it as `kill -9` does, in the middle of whatever it does. */
  kill(): Promise<void>;
}

/**
 * Runs a script in a process of its own. The script makes a provider on the same state as the suite's and hands it to
 * `coordinate`; `args` tell it where that state is.
 */
export async function spawnCoordinator(script: URL, args: readonly string[] = []): Promise<OtherCoordinator> {
  const child = spawn(process.execPath, [fileURLToPath(script), ...args], { stdio: ["pipe", "pipe", "inherit"] });
  const gone = once(child, "close");
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  return {
    async send(task) {
      child.stdin.write(`${JSON.stringify(task)}\n`);
      const line = await lines.next();
      if (line.done === true) throw new Error("the other coordinator ended before it reported");
      return JSON.parse(line.value) as CoordinatorReport;
    },
    async kill() {
      child.kill("SIGKILL");
      await gone;
    },
  };
}

/** The body of such a script: takes tasks on standard input until it is killed or the input ends. */
export async function coordinate(provider: SandboxProvider): Promise<void> {
  for await (const line of createInterface({ input: process.stdin })) {
    const report = await perform(provider, JSON.parse(line) as CoordinatorTask);
    process.stdout.write(`${JSON.stringify(report)}\n`);
  }
}

/** Answers as soon as the task can be reported; what goes on behind it ends with the coordinator. */
async function perform(provider: SandboxProvider, task: CoordinatorTask): Promise<CoordinatorReport> {
  switch (task.type) {
    case "create":
      return { type: "created", sandbox: (await provider.create(task.request)).id };
    case "stream":
      return await stream(provider, task);
    case "write":
      return await write(provider, task);
    case "openChannel":
      await (await provider.get(task.sandbox)).openChannel();
      return { type: "listening" };
  }
}

async function stream(
  provider: SandboxProvider,
  task: CoordinatorTask & { type: "stream" },
): Promise<CoordinatorReport> {
  const sandbox = await provider.get(task.sandbox);
  const exec = await sandbox.exec(task.exec);
  const { promise, resolve, reject } = Promise.withResolvers<CoordinatorReport>();
  const read = async () => {
    let bytes = 0;
    for await (const chunk of exec.output()) {
      if (chunk.type === "stdout") bytes += chunk.data.length;
      if (bytes >= task.bytes) resolve({ type: "streamed", exec: exec.id, bytes });
    }
  };
  read().catch(reject);
  return await promise;
}

async function write(provider: SandboxProvider, task: CoordinatorTask & { type: "write" }): Promise<CoordinatorReport> {
  const sandbox = await provider.get(task.sandbox);
  const { promise, resolve, reject } = Promise.withResolvers<CoordinatorReport>();
  async function* halting() {
    yield new Uint8Array(256 * 1024).fill(120);
    resolve({ type: "writing" });
    await new Promise(() => undefined);
  }
  sandbox.files.write(task.path, halting()).catch(reject);
  return await promise;
}
