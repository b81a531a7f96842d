import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { rmSync, writeFileSync } from "node:fs";
import type { Socket } from "node:net";
import { join } from "node:path";
import { type Limits, SlipwayError } from "@slipway/contract";
import type { Cgroups } from "../limits/cgroup.ts";
import { openCgroup } from "../limits/cgroup-control.ts";
import {
  complaintIn,
  type Identity,
  joinArguments,
  launchArguments,
  parseLaunchStatus,
  type StartSpec,
  standbyArguments,
  startArguments,
  waitingLine,
} from "./launch.ts";
import { killIfThere, type Launched, type LaunchService } from "./launch-service.ts";

/**
 * Keeps a launcher standing by in its own control groups: entering them takes longer than the rest of a start. It holds
 * nothing of a sandbox and ends with this process.
 */
export interface Launchpad extends AsyncDisposable {
  reserve(): Reservation;
}

export interface Reservation {
  /** The sandbox's control groups. Record them before the start. */
  readonly cgroups: readonly string[];
  /** Resolves to the host's pid of the sandbox's pid 1 when that accepts connections. A failed start leaves no process. */
  start(spec: StartSpec, limits: StartLimits, options?: { readonly signal?: AbortSignal }): Promise<number>;
}

export type StartLimits = Pick<Limits, "cpu" | "memoryMb" | "processes">;

export interface LaunchpadOptions {
  readonly service: LaunchService;
  readonly identity: Identity | null;
  readonly cgroups: Cgroups;
  /** On the file system of the boxes, owned by the sandboxes' uid. */
  readonly spares: string;
}

/** Lets a new sandbox's first command run before the next launcher starts. */
const refillMs = 15;

export function createLaunchpad(options: LaunchpadOptions): Launchpad {
  let spare: Standby | null = standBy(options);
  let closed = false;
  const refill = () => {
    if (!closed) spare ??= standBy(options);
  };
  const refillLater = () => void setTimeout(refill, refillMs).unref();
  return {
    reserve() {
      const standby = spare?.alive() ? spare : null;
      spare = null;
      const name = standby?.name ?? newName();
      return {
        cgroups: options.cgroups.directories(name),
        start: (spec, limits, { signal } = {}) =>
          start(options, name, standby, spec, limits, signal).finally(refillLater),
      };
    },
    async [Symbol.asyncDispose]() {
      closed = true;
      if (spare !== null) await giveUp(spare);
      spare = null;
    },
  };
}

interface Launch {
  readonly cgroups: readonly string[];
  /** The box that it makes ahead. */
  readonly spare: string | null;
  readonly launched: Promise<Launched>;
  alive(): boolean;
  /** All of its output so far. */
  said(): string;
}

interface Standby extends Launch {
  readonly name: string;
}

function newName(): string {
  return randomBytes(8).toString("hex");
}

function standBy({ service, identity, cgroups, spares }: LaunchpadOptions): Standby {
  const name = newName();
  const directories = cgroups.directories(name);
  const spare = join(spares, name);
  return { name, ...follow(service.run(standbyArguments(identity, directories, spare)), directories, spare) };
}

function follow(launched: Promise<Launched>, cgroups: readonly string[], spare: string | null): Launch {
  let said = "";
  let alive = true;
  const ended = () => {
    alive = false;
  };
  launched.then(({ connection }) => {
    connection.on("data", (text: string) => {
      said += text;
    });
    // A launcher that stands by does not keep the process alive.
    connection.once("close", ended).resume().unref();
  }, ended);
  return { cgroups, spare, launched, alive: () => alive, said: () => said };
}

const startLimitMs = 60_000;

/** Without a standby, starts a launcher with all arguments at once. */
async function start(
  { service, identity, cgroups }: LaunchpadOptions,
  name: string,
  standby: Standby | null,
  spec: StartSpec,
  limits: StartLimits,
  signal: AbortSignal | undefined,
): Promise<number> {
  // Each user may have as many processes, so that none takes those reserved for pid 1.
  const processes = spec.secondUser ? 2 * limits.processes : limits.processes;
  const plan = cgroups.plan(name, { ...limits, processes });
  const tell = () => service.run(launchArguments({ ...spec, identity, cgroup: plan }));
  const launch = standby ?? follow(tell(), plan.directories, null);
  const timeout = AbortSignal.timeout(startLimitMs);
  const stop = signal === undefined ? timeout : AbortSignal.any([signal, timeout]);
  try {
    const { connection } = await launch.launched;
    connection.ref();
    if (standby !== null) {
      await hear(launch, connection, stop, (said) => (said.startsWith(waitingLine) ? said : null));
      for (const { file, value } of plan.sets) writeFileSync(file, value);
      connection.end(joinArguments(startArguments(spec)));
    }
    const pid = await hear(launch, connection, stop, (said) => {
      const { childPid, ready } = parseLaunchStatus(said);
      return ready ? childPid : null;
    });
    connection.destroy();
    return pid;
  } catch (cause) {
    await giveUp(launch);
    if (signal?.aborted) throw new SlipwayError("aborted", "The caller aborted the start.", { cause });
    if (cause instanceof SlipwayError) throw cause;
    const words = timeout.aborted
      ? `The sandbox did not start within ${startLimitMs / 1000} s.`
      : (cause as Error).message;
    throw new SlipwayError("sandbox_start_failed", complaintIn(launch.said()) || words, { cause });
  }
}

/** Resolves when `find` finds something in the launch's output. */
function hear<T>(
  { said, alive }: Launch,
  connection: Socket,
  signal: AbortSignal,
  find: (said: string) => T | null,
): Promise<T> {
  const { promise, resolve, reject } = Promise.withResolvers<T>();
  const look = () => {
    const found = find(said());
    if (found !== null) resolve(found);
    else if (!alive()) reject(new Error("The launcher ended without a message."));
  };
  const abort = () => reject(signal.reason);
  connection.on("data", look).once("close", look);
  signal.addEventListener("abort", abort, { once: true });
  if (signal.aborted) abort();
  look();
  return promise.finally(() => {
    connection.off("data", look).off("close", look);
    signal.removeEventListener("abort", abort);
  });
}

/** After this, leaves the rest to the kernel. */
const hangUpMs = 10_000;

/** Resolves when no process of the launch has the connection any more. */
async function hangUp({ connection }: Launched): Promise<void> {
  connection.ref();
  if (!connection.closed)
    await once(connection, "close", { signal: AbortSignal.timeout(hangUpMs) }).catch(() => undefined);
  connection.destroy();
}

/** Kills all of its processes, even after the start began, and removes its groups and its spare box. */
async function giveUp({ launched, cgroups, spare, alive, said }: Launch): Promise<void> {
  await launched.then(
    ({ kill }) => {
      // Bubblewrap's two processes share a process group until the inner one makes its own session.
      const { childPid } = parseLaunchStatus(said());
      if (childPid !== null && alive()) killIfThere(childPid);
      kill();
    },
    () => undefined,
  );
  await (await openCgroup(cgroups)).kill();
  // A process that is killed while it makes a group or its spare box may still finish that.
  await launched.then(hangUp, () => undefined);
  const cgroup = await openCgroup(cgroups);
  await cgroup.kill();
  await cgroup.remove();
  if (spare !== null) rmSync(spare, { recursive: true, force: true });
}
