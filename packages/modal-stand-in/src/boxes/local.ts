import { chmod, mkdtemp, readdir, readFile, rm } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { hasCode, limitsSchema, maxLifetimeMs } from "@slipway/contract";
import type { SandboxProvider } from "@slipway/sandbox";
import { openProvider } from "@slipway/sandbox/open";
import type { Boxes, BoxRequest } from "./boxes.ts";

/** Enough for programs that start many, such as a browser or a package manager. */
const processes = 4096;

/** Sandboxes of the local provider, in a state directory of their own that goes with them. */
export function openLocalBoxes(environment: Readonly<Record<string, string | undefined>>): Boxes {
  let opening: Promise<{ directory: string; stateDir: string; provider: SandboxProvider }> | null = null;
  const open = () => {
    opening ??= openState(environment);
    return opening;
  };
  return {
    hasProcesses: true,
    async create(request) {
      const { provider } = await open();
      return await provider.create(toLocal(request));
    },
    async deleteSnapshot(id) {
      const { provider } = await open();
      await provider.snapshots.delete(id).catch((error: unknown) => {
        if (!hasCode(error, "snapshot_not_found")) throw error;
      });
    },
    async [Symbol.asyncDispose]() {
      if (opening === null) return;
      const { directory, stateDir, provider } = await opening;
      for (const { id } of await provider.list()) await (await provider.get(id)).destroy();
      await provider[Symbol.asyncDispose]();
      await endKeeper(stateDir);
      await rm(directory, { recursive: true, force: true, maxRetries: 10 });
    },
  };
}

async function openState(environment: Readonly<Record<string, string | undefined>>) {
  const directory = await mkdtemp("/var/tmp/modal-stand-in-");
  // The sandboxes' own uid has to pass it.
  await chmod(directory, 0o711);
  const stateDir = join(directory, "state");
  return { directory, stateDir, provider: await openProvider({ stateDir, environment }) };
}

function toLocal({ snapshot, environment, cpu, memoryMb, ports, network, lifetimeMs }: BoxRequest) {
  const { cpu: cpuLimit, memoryMb: memoryLimit } = limitsSchema.shape;
  return {
    ...(snapshot === null ? { image: "host" as const } : { snapshot }),
    user: "root" as const,
    workdir: "/",
    env: { ...environment },
    ports: [...ports],
    network,
    processes,
    lifetimeMs: Math.min(lifetimeMs, maxLifetimeMs),
    idleMs: null,
    onEnd: "destroy" as const,
    ...(cpu !== undefined && cpuLimit.safeParse(cpu).success && { cpu }),
    ...(memoryMb !== undefined && memoryLimit.safeParse(memoryMb).success && { memoryMb }),
  };
}

/** The keeper of a state directory outlives its callers, so that it has to be told. */
async function endKeeper(stateDir: string): Promise<void> {
  const title = `slipway-keeper ${stateDir}`;
  const pids = (await readdir("/proc")).filter((name) => /^\d+$/.test(name));
  const titles = await Promise.all(pids.map((pid) => titleOf(pid)));
  const keepers = pids.filter((_, number) => titles[number] === title);
  for (const pid of keepers) process.kill(Number(pid), "SIGTERM");
  for (const pid of keepers) while ((await titleOf(pid)) === title) await delay(20);
}

async function titleOf(pid: string): Promise<string> {
  const line = await readFile(`/proc/${pid}/cmdline`, "utf8").catch(() => "");
  return line.replaceAll("\0", " ").trim();
}
