import { spawn } from "node:child_process";
import { type CreateSandbox, type SandboxId, SlipwayError } from "@slipway/contract";
import type { CgroupPlan, Cgroups } from "../cgroup.ts";
import { type HostMasks, type Identity, type LaunchSpec, launchArguments, parseLaunchStatus } from "../launch.ts";
import type { Layout } from "../layout.ts";
import type { AgentLink } from "./agent-link.ts";
import type { Box, Boxes } from "./boxes.ts";
import { closeExecLogs } from "./exec-logs.ts";
import type { Hold } from "./hold.ts";
import type { Networks } from "./networks.ts";
import { type ProcessIdentity, endProcess, identify, isAlive } from "./process.ts";

/** Brings a sandbox's processes up and down. The caller holds the sandbox's queue. */
export interface Runtime {
  /** The control groups that a sandbox gets. */
  plan(id: SandboxId, request: CreateSandbox): CgroupPlan;
  /** Resolves when the sandbox takes execs. */
  launch(box: Box, signal: AbortSignal): Promise<void>;
  /** Takes over a sandbox that another keeper launched; false when its pid 1 does not answer. */
  adopt(box: Box, process: ProcessIdentity): Promise<boolean>;
  /** Resolves when every process is gone, its control groups too. Nothing to do is fine. */
  end(box: Box): Promise<void>;
  isAlive(box: Box): boolean;
}

export interface RuntimeParts {
  readonly layout: Layout;
  readonly boxes: Boxes;
  readonly cgroups: Cgroups;
  readonly agent: AgentLink;
  readonly hold: Hold;
  readonly networks: Networks;
  readonly programs: { readonly launch: string; readonly bwrap: string; readonly agent: string; readonly seccomp: Record<"agent" | "root", string> };
  readonly identity: Identity | null;
  readonly masks: HostMasks;
  onDeath(box: Box): void;
}

const launchLimitMs = 30_000;

export function createRuntime(parts: RuntimeParts): Runtime {
  const { layout, boxes, agent, networks, hold } = parts;

  const park = async (box: Box) => {
    const socket = await agent.park(box);
    box.park = socket;
    socket.once("close", () => {
      // The one that `end` closes is taken out of the box first.
      if (box.park === socket) parts.onDeath(box);
    });
  };
  const plan = (id: SandboxId, request: CreateSandbox) => parts.cgroups.plan(id, request);
  return {
    plan,
    async launch(box, signal) {
      const args = launchArguments(specOf(parts, box, plan(box.id, box.record.request)));
      const pid = await spawnLauncher(parts.programs.launch, args, signal);
      const process = identify(pid);
      if (process === null) throw new SlipwayError("sandbox_start_failed", "the sandbox ended as soon as it had started");
      box.record = { ...box.record, process };
      await networks.open(box);
      await park(box);
    },
    async adopt(box, process) {
      boxes.update(box, { process });
      await networks.open(box);
      try {
        if (box.record.state !== "sleeping") await agent.use(box);
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
      // A frozen process of cgroup v1 takes KILL only when it is thawed.
      if (record.state === "sleeping") await hold.thaw(box).catch(() => undefined);
      if (record.process !== null) await endProcess(record.process);
      await hold.release(box);
      closeExecLogs(layout.box(box.id).execs);
    },
    isAlive: (box) => box.record.process !== null && isAlive(box.record.process),
  };
}

function specOf(parts: RuntimeParts, box: Box, cgroup: CgroupPlan): LaunchSpec {
  const { layout, programs, identity, masks } = parts;
  const { request, lowers, image } = box.record;
  const mebibyte = 1024 * 1024;
  return {
    layers: layout.layers,
    mountPoint: layout.mountPoint,
    box: layout.box(box.id),
    lowers,
    root: image.kind,
    user: request.user,
    workdir: request.workdir,
    limits: {
      processes: request.processes,
      fileBytes: request.diskMb * mebibyte,
      dataBytes: parts.cgroups.mechanisms.memory === "none" ? request.memoryMb * mebibyte : 0,
    },
    egress: true,
    forwards: request.network.forwards,
    programs: { bwrap: programs.bwrap, agent: programs.agent, seccomp: programs.seccomp[request.user] },
    identity,
    cgroup,
    masks,
  };
}

/** Pid 1 of the new sandbox, once it takes connections. */
function spawnLauncher(program: string, args: readonly string[], signal: AbortSignal): Promise<number> {
  return new Promise((resolve, reject) => {
    const child = spawn(program, args, { stdio: ["ignore", "pipe", "pipe"], detached: true, env: {} });
    let status = "";
    let complaint = "";
    const settle = () => {
      clearTimeout(timer);
      signal.removeEventListener("abort", onAbort);
      child.removeAllListeners();
      child.stdout.destroy();
      child.stderr.destroy();
      child.unref();
    };
    const fail = async (message: string) => {
      settle();
      const begun = [parseLaunchStatus(status).childPid, child.pid ?? null].map((pid) => (pid === null ? null : identify(pid)));
      for (const process of begun) if (process !== null) await endProcess(process).catch(() => undefined);
      reject(signal.aborted ? new SlipwayError("aborted", "the start was aborted") : new SlipwayError("sandbox_start_failed", message));
    };
    const onAbort = () => fail("aborted");
    const timer = setTimeout(() => fail(`the sandbox was not up after ${launchLimitMs / 1000} s`), launchLimitMs);
    signal.addEventListener("abort", onAbort, { once: true });
    child.once("error", (error) => fail(`can not run ${program}: ${error.message}`));
    child.once("close", () => fail(complaint.trim() || "the sandbox's launcher ended without a word"));
    child.stderr.on("data", (chunk) => {
      if (complaint.length < 4096) complaint += chunk;
    });
    child.stdout.on("data", (chunk) => {
      status += chunk;
      const { ready, childPid } = parseLaunchStatus(status);
      if (!ready || childPid === null) return;
      settle();
      resolve(childPid);
    });
  });
}

