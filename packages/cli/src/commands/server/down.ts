import { randomUUID } from "node:crypto";
import process from "node:process";
import { setTimeout as delay } from "node:timers/promises";
import type { Client } from "@slipway/client";
import { type BuildId, hasCode, SlipwayError } from "@slipway/contract";
import type { Context } from "../../input/command.ts";
import { everyBuild } from "../../input/resolve.ts";
import { clientOf, findHealth } from "../../server/connect.ts";

const endMs = 60_000;
const pauseMs = 60_000;
const pollMs = 50;

/** Shuts the server down. Its builds are paused if asked for; otherwise the next server continues them. */
export async function run(context: Context): Promise<void> {
  const { signal } = context.interrupts;
  const client = clientOf(await context.stateDir());
  const health = await findHealth(client, signal);
  if (health === undefined) return await context.result({ stopped: false }, "no server is running\n");
  const { pid } = health;
  const builds = everyBuild(client, { status: ["planning", "running"] }, signal);
  const underway = (await Array.fromAsync(builds)).map(({ id }) => id);
  const paused = context.args.flag("pause") ? await pauseAll(client, underway, signal) : [];
  const handedOver = underway.filter((id) => !paused.includes(id));
  process.kill(pid, "SIGTERM");
  await untilGone(pid, signal);
  await context.result({ stopped: true, pid, paused, handedOver }, () =>
    [
      ...paused.map((id) => `${id} is paused; resume it with: slipway resume ${id}\n`),
      `server (process ${pid}) stopped\n`,
      ...handedOver.map((id) => `${id} continues with the next server: slipway up\n`),
    ].join(""),
  );
}

/** Returns the builds that have stopped. */
async function pauseAll(client: Client, builds: readonly BuildId[], signal: AbortSignal): Promise<BuildId[]> {
  for (const id of builds) {
    await client.builds.pause(id, { signal, key: randomUUID() }).catch((error) => {
      if (!hasCode(error, "build_ended")) throw error;
    });
  }
  const paused: BuildId[] = [];
  const deadline = performance.now() + pauseMs;
  for (const id of builds) {
    for (;;) {
      const { status, endedAt } = await client.builds.get(id, { signal });
      if (status === "paused") paused.push(id);
      if (status === "paused" || endedAt !== null || performance.now() > deadline) break;
      await delay(pollMs, undefined, { signal });
    }
  }
  return paused;
}

async function untilGone(pid: number, signal: AbortSignal): Promise<void> {
  const deadline = performance.now() + endMs;
  while (isAlive(pid)) {
    if (performance.now() > deadline) {
      throw new SlipwayError("server_running", `The server (process ${pid}) does not stop.`);
    }
    await delay(pollMs, undefined, { signal });
  }
}

function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}
