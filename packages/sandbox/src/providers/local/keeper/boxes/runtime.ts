import type { Socket } from "node:net";
import { join } from "node:path";
import { type CreateSandbox, SlipwayError } from "@slipway/contract";
import { closeExecLogs } from "../../../../agent/exec/close-logs.ts";
import type { Runtime } from "../../../../keeper/runtime.ts";
import type { HostMasks, StartSpec } from "../../launch/launch.ts";
import type { Launchpad } from "../../launch/launchpad.ts";
import { seccompProfile } from "../../launch/seccomp.ts";
import type { Origin, SandboxRecord } from "../../record.ts";
import type { AgentLink } from "./agent-link.ts";
import type { Box } from "./boxes.ts";
import { type CaptureParts, capture } from "./capture.ts";
import type { Networks } from "./networks.ts";
import { endProcess, hasEnded, identify, isAlive, type ProcessIdentity } from "./process.ts";
import type { Programs } from "./programs.ts";
import { boxesOnDisk, findSandboxProcesses, finishSeal } from "./survey.ts";

export type LocalRuntime = Runtime<SandboxRecord, Origin, ProcessIdentity>;

export interface RuntimeParts extends CaptureParts {
  readonly launchpad: Launchpad;
  /** Without a memory controller, the limit applies to each process. */
  readonly limitsMemory: boolean;
  readonly agent: AgentLink;
  readonly networks: Networks;
  readonly programs: Programs;
  readonly masks: HostMasks;
  /** The layers of the request's image. */
  readonly originOf: LocalRuntime["originOf"];
  removeTree(path: string): Promise<void>;
  /** See `LaunchSpec`. */
  hasSecondUser(request: CreateSandbox): boolean;
  onDeath(box: Box): void;
}

const endingMs = 5000;

/** Starts, holds and ends a sandbox's processes. */
export function createRuntime(parts: RuntimeParts): LocalRuntime {
  const { layout, boxes, agent, networks, hold } = parts;
  const parked = new WeakMap<Box, Socket>();

  /** A connection that stays open as long as the sandbox lives: its close tells of a death. */
  const park = async (box: Box) => {
    const socket = await agent.park(box);
    parked.set(box, socket);
    socket.once("close", () => {
      // `end` forgets it before it closes the connection.
      if (parked.get(box) === socket) parts.onDeath(box);
    });
  };
  /** A keeper that is killed during a snapshot, sleep or wake may leave a sandbox frozen or thawed against its record. */
  const holdAsRecorded = async (box: Box) => {
    if (box.record.state === "sleeping") return await hold.freeze(box).catch(() => undefined);
    await hold.thaw(box);
    await agent.use(box);
  };
  const end = async (box: Box) => {
    const { record } = box;
    const socket = parked.get(box);
    parked.delete(box);
    socket?.destroy();
    await networks.close(box);
    // In cgroup v1, a frozen process dies only when thawed.
    if (record.state === "sleeping") await hold.thaw(box).catch(() => undefined);
    if (record.process !== null) await endProcess(record.process);
    await hold.release(box);
    closeExecLogs(layout.box(box.id).execs);
  };
  return {
    requireRoom: () => parts.space.require(),
    originOf: parts.originOf,
    recordOf: (common, { root, lowers }) => ({ ...neverRun, ...common, image: root, lowers }),
    capture: (box) => capture(parts, box),
    reserve() {
      const reservation = parts.launchpad.reserve();
      return {
        recorded: { cgroups: reservation.cgroups },
        async start(box, signal) {
          const process = identify(await reservation.start(specOf(parts, box), box.record.request, { signal }));
          if (process === null) {
            throw new SlipwayError("sandbox_start_failed", "The sandbox ended right after its start.");
          }
          box.record = { ...box.record, process };
          // Its control groups are new.
          hold.toldOomKills.delete(box);
          await networks.open(box);
          park(box).catch(() => parts.onDeath(box));
        },
      };
    },
    end,
    stop: end,
    ended: { process: null, cgroups: [] },
    async sleep(box) {
      await hold.freeze(box);
      return true;
    },
    wake: (box) => hold.thaw(box),
    removeFiles: (id) => parts.removeTree(layout.box(id).root),
    processes: async (box) => (await hold.processes(box)).length,
    use: (box) => agent.use(box),
    survey: async () => findSandboxProcesses(layout),
    // Asked directly: it may be newer than the survey.
    isUp: ({ record }) => record.process !== null && isAlive(record.process),
    async isGone(box) {
      const { process } = box.record;
      // Many processes take some time to end.
      if (process === null || (await hasEnded(process, endingMs))) return true;
      await park(box);
      return false;
    },
    async whyGone(box) {
      return (await hold.oomKills(box)) > (hold.toldOomKills.get(box) ?? 0) ? "out_of_memory" : null;
    },
    repair: (box) => finishSeal(layout, parts.layers, box),
    async adopt(box, process) {
      if (process === undefined) return false;
      boxes.update(box, { process });
      try {
        await holdAsRecorded(box);
        await networks.open(box);
        await park(box);
        return true;
      } catch {
        return false;
      }
    },
    async endFound(process) {
      if (!isAlive(process)) return false;
      await endProcess(process);
      return true;
    },
    sandboxesWithFiles: () => boxesOnDisk(layout),
  };
}

const neverRun = { process: null, cgroups: [], incremental: null, previews: {} } as const;

function specOf(parts: RuntimeParts, box: Box): StartSpec {
  const { layout, programs, masks } = parts;
  const { request, network, lowers, image, tools } = box.record;
  const mebibyte = 1024 * 1024;
  const users = { user: request.user, secondUser: parts.hasSecondUser(request) };
  return {
    layers: layout.layers,
    mountPoint: layout.mountPoint,
    box: layout.box(box.id),
    lowers,
    root: image.kind,
    ...users,
    workdir: request.workdir,
    limits: {
      processes: request.processes,
      fileBytes: request.diskMb * mebibyte,
      dataBytes: parts.limitsMemory ? 0 : request.memoryMb * mebibyte,
    },
    egress: true,
    forwards: network.forwards,
    tools: tools.map(({ name, digest }) => ({ name, directory: join(layout.tools, digest) })),
    programs: { bwrap: programs.bwrap, agent: programs.agent, seccomp: programs.seccomp[seccompProfile(users)] },
    masks,
  };
}
