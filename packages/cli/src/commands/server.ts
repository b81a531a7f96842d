import { once } from "node:events";
import process from "node:process";
import { setTimeout as delay } from "node:timers/promises";
import { SlipwayError } from "@slipway/contract";
import type { Context } from "../command.ts";
import { clientOf, isThere } from "../server/connect.ts";
import { spawnServer, untilReady } from "../server/start.ts";

export async function run(context: Context): Promise<number> {
  const stateDir = await context.stateDir();
  return context.args.flag("stop") ? await stop(context, stateDir) : await runInForeground(context, stateDir);
}

async function runInForeground(context: Context, stateDir: string): Promise<number> {
  const child = spawnServer({ stateDir, environment: context.io.env }, { stderr: "inherit" });
  const exited = once(child, "exit") as Promise<[number | null, string | null]>;
  // A terminal sends an interrupt to both: the server ends in order, and this program after it.
  using _interrupts = context.interrupts.take((signal) => {
    if (signal === "SIGTERM" || !isInTerminal(context)) child.kill(signal);
  });
  await untilReady(child, () => "it has ended without a word");
  const [code] = await exited;
  return code ?? 1;
}

function isInTerminal({ io: { stdin, stdout, stderr } }: Context): boolean {
  return [stdin, stdout, stderr].some(({ isTTY }) => isTTY === true);
}

const endMs = 30_000;
const pollMs = 50;

async function stop(context: Context, stateDir: string): Promise<number> {
  const { signal } = context.interrupts;
  const client = clientOf(stateDir);
  if (!(await isThere(client, signal))) {
    await context.result({ stopped: false }, "there is no server\n");
    return 0;
  }
  const { pid } = await client.health({ signal });
  process.kill(pid, "SIGTERM");
  const deadline = performance.now() + endMs;
  while (isAlive(pid)) {
    if (performance.now() > deadline)
      throw new SlipwayError("server_running", `the server (process ${pid}) does not end`);
    await delay(pollMs, undefined, { signal });
  }
  await context.result({ stopped: true, pid }, `the server (process ${pid}) has ended\n`);
  return 0;
}

function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}
