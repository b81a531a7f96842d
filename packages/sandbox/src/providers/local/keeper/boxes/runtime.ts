import { join } from "node:path";
import { type CreateSandbox, SlipwayError } from "@slipway/contract";
import type { HostMasks, StartSpec } from "../../launch/launch.ts";
import type { Launchpad, Reservation } from "../../launch/launchpad.ts";
import { seccompProfile } from "../../launch/seccomp.ts";
import type { Layout } from "../../layout.ts";
import type { AgentLink } from "./agent-link.ts";
import type { Box, Boxes } from "./boxes.ts";
import { closeExecLogs } from "./exec-logs.ts";
import type { Hold } from "./hold.ts";
import type { Networks } from "./networks.ts";
import { endProcess, hasEnded, identify, type ProcessIdentity } from "./process.ts";
import type { Programs } from "./programs.ts";

/** Starts and ends a sandbox's processes. The caller holds the sandbox's queue. */
export interface Runtime {
  /** Reserves control groups for a start. Record them before the start. */
  reserve(): Reservation;
  /** Resolves when the sandbox accepts execs. */
  launch(box: Box, reservation: Reservation, signal: AbortSignal): Promise<void>;
  /** Takes over a sandbox from another keeper; false when its pid 1 does not answer. */
  adopt(box: Box, process: ProcessIdentity): Promise<boolean>;
  /** Resolves when every process and control group is gone, or was before. */
  end(box: Box): Promise<void>;
  /** For when its connection has closed: whether its processes end soon. If not, connects again. */
  isGone(box: Box): Promise<boolean>;
}

export interface RuntimeParts {
  readonly layout: Layout;
  readonly boxes: Boxes;
  readonly launchpad: Launchpad;
  /** Without a memory controller, the limit applies to each process. */
  readonly limitsMemory: boolean;
  readonly agent: AgentLink;
  readonly hold: Hold;
  readonly networks: Networks;
  readonly programs: Programs;
  readonly masks: HostMasks;
  /** See `LaunchSpec`. */
  hasSecondUser(request: CreateSandbox): boolean;
  onDeath(box: Box): void;
}

/** Many processes take some time to end. */
const endingMs = 5000;

export function createRuntime(parts: RuntimeParts): Runtime {
  const { layout, boxes, agent, networks, hold } = parts;

  const park = async (box: Box) => {
    const socket = await agent.park(box);
    box.park = socket;
    socket.once("close", () => {
      // `end` clears box.park before it closes the connection.
      if (box.park === socket) parts.onDeath(box);
    });
  };
  /** A keeper that is killed during a snapshot, sleep or wake may leave a sandbox frozen or thawed against its record. */
  const holdAsRecorded = async (box: Box) => {
    if (box.record.state === "sleeping") return await hold.freeze(box).catch(() => undefined);
    await hold.thaw(box);
    await agent.use(box);
  };
  return {
    reserve: () => parts.launchpad.reserve(),
    async launch(box, reservation, signal) {
      const process = identify(await reservation.start(specOf(parts, box), box.record.request, { signal }));
      if (process === null) throw new SlipwayError("sandbox_start_failed", "The sandbox ended right after its start.");
      box.record = { ...box.record, process };
      // Its control groups are new.
      box.oomKills = 0;
      await networks.open(box);
      park(box).catch(() => parts.onDeath(box));
    },
    async adopt(box, process) {
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
    async end(box) {
      const { park, record } = box;
      box.park = null;
      park?.destroy();
      await networks.close(box);
      // In cgroup v1, a frozen process dies only when thawed.
      if (record.state === "sleeping") await hold.thaw(box).catch(() => undefined);
      if (record.process !== null) await endProcess(record.process);
      await hold.release(box);
      closeExecLogs(layout.box(box.id).execs);
    },
    async isGone(box) {
      const { process } = box.record;
      if (process === null || (await hasEnded(process, endingMs))) return true;
      await park(box);
      return false;
    },
  };
}

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
