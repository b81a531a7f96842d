import { join } from "node:path";
import { run } from "@slipway/sandbox";
import type { Boxes } from "../boxes/boxes.ts";
import type { Certificates } from "../certificates.ts";
import type { Clock } from "../clock.ts";
import { startCommand } from "../execs/command.ts";
import type { FaultPlan } from "../fault-plan.ts";
import { newModalId, newSandboxId } from "../ids.ts";
import type { Images } from "../images/images.ts";
import type { Secrets } from "../objects/secrets.ts";
import type { Volumes } from "../objects/volumes.ts";
import type { Tokens } from "../tokens.ts";
import type { SandboxCreateRequest } from "../wire.ts";
import { localPolicy } from "./network.ts";
import { resultOf, type Sandbox } from "./sandbox.ts";
import { startTimers } from "./timers.ts";
import { openTunnels } from "./tunnels.ts";

export interface CreateParts {
  readonly boxes: Boxes;
  readonly clock: Clock;
  readonly faults: FaultPlan;
  readonly images: Images;
  readonly secrets: Secrets;
  readonly volumes: Volumes;
  readonly tokens: Tokens;
  readonly certificates: Certificates;
  readonly directory: string;
  /** Seconds, later than those of every sandbox before. */
  readonly nextCreatedAt: () => number;
}

/** The port of connect tokens when they name none; open in every sandbox. */
const connectPort = 8080;

/** Makes a sandbox with all that it asks for, and starts its command. What fails leaves nothing behind. */
export async function createSandbox(
  parts: CreateParts,
  generation: "v1" | "v2",
  request: SandboxCreateRequest,
): Promise<Sandbox> {
  const { definition } = request;
  const id = newSandboxId(generation);
  const image = parts.images.get(definition.imageId);
  const environment = {
    ...image.environment,
    ...parts.secrets.environmentOf(definition.secretIds, request.secretSources),
    ...(definition.includeOidcIdentityToken && { MODAL_IDENTITY_TOKEN: parts.tokens.sign({ sandbox: id }) }),
    MODAL_SANDBOX_ID: id,
  };
  const workdir = definition.workdir ?? image.workdir ?? "/";
  const directory = join(parts.directory, id);
  await using undo = new AsyncDisposableStack();
  const box = await parts.boxes.create({
    snapshot: image.snapshot,
    environment,
    ...limitsOf(request),
    ports: portsOf(request),
    network: localPolicy(definition.networkAccess),
    lifetimeMs: definition.timeoutSecs * 1000 + graceMs,
  });
  undo.defer(async () => void (await box.destroy()));
  if (definition.workdir !== undefined) await run(box, ["mkdir", "-p", "--", workdir]);
  if (definition.experimentalOptionsV2["enable_docker"] === "true") await run(box, ["mkdir", "-p", "/var/lib/docker"]);
  const volumes = await parts.volumes.mount(box, definition.volumeMounts);
  let sandbox: Sandbox | undefined;
  const tunnels = await openTunnels(definition.openPorts?.ports ?? [], {
    certificate: parts.certificates.context,
    latencyMs: () => parts.faults.tunnelMs,
    isStalled: () => parts.faults.tunnelsStalled,
    connect: (port) => box.connect(port),
    onUse: () => {
      if (sandbox !== undefined) sandbox.usedAtMs = parts.clock.now();
    },
  });
  undo.use(tunnels);
  const argv = [...image.entrypoint, ...definition.entrypointArgs];
  const main =
    argv.length === 0 || !parts.boxes.hasProcesses
      ? null
      : await startCommand(box, {
          argv,
          environment: {},
          cwd: workdir,
          timeoutMs: null,
          pty: definition.ptyInfo?.enabled === true ? ptySize(definition.ptyInfo) : undefined,
          outputDirectory: join(directory, "main"),
          keep: { stdout: true, stderr: true },
        });
  const made = compose(parts, { id, request, environment, workdir, directory, box, volumes, tunnels, main });
  sandbox = made;
  undo.move();
  void main?.ended.then((end) => made.end(resultOf(end)));
  return made;
}

type Made = Pick<Sandbox, "id" | "environment" | "workdir" | "directory" | "box" | "volumes" | "tunnels" | "main"> & {
  readonly request: SandboxCreateRequest;
};

function compose(parts: CreateParts, { request, ...made }: Made): Sandbox {
  const { definition, appId, tags } = request;
  const { promise: ended, resolve } = Promise.withResolvers<void>();
  const startedAtMs = parts.clock.now();
  let ending: Promise<void> | null = null;
  const sandbox: Sandbox = {
    ...made,
    taskId: newModalId("ta"),
    appId,
    name: definition.name ?? "",
    definition,
    tags,
    createdAt: parts.nextCreatedAt(),
    startedAtMs,
    endedAtMs: null,
    execs: new Map(),
    network: definition.networkAccess,
    usedAtMs: startedAtMs,
    result: undefined,
    ended,
    exitImage: null,
    end(result) {
      ending ??= (async () => {
        timers[Symbol.dispose]();
        sandbox.endedAtMs = parts.clock.now();
        await takeDown(sandbox, parts.images, () => {
          sandbox.result = result;
        });
        resolve();
      })();
      return ending;
    },
  };
  const timers = startTimers(sandbox, parts.clock);
  return sandbox;
}

/** What it wrote to its volumes is kept. Its processes are gone before anybody hears of its end. */
async function takeDown(sandbox: Sandbox, images: Images, tell: () => void): Promise<void> {
  const { box, volumes, tunnels, definition } = sandbox;
  await volumes.commit().catch(() => {});
  if (definition.experimentalOptionsV2["enable_exit_snapshot"] === "true") {
    const snapshot = await box.snapshot().catch(() => null);
    if (snapshot !== null)
      sandbox.exitImage = images.add({ ...images.get(definition.imageId), snapshot: snapshot.id }, 0);
  }
  await tunnels[Symbol.asyncDispose]();
  await box.destroy().catch(() => {});
  tell();
}

function ptySize({ winszRows, winszCols }: { winszRows: number; winszCols: number }) {
  return { rows: winszRows || 24, cols: winszCols || 80 };
}

function portsOf({ definition }: SandboxCreateRequest): number[] {
  const { openPorts, readinessProbe } = definition;
  const wanted = [
    ...(openPorts?.ports ?? []).map(({ port }) => port),
    readinessProbe?.tcpPort ?? connectPort,
    connectPort,
  ];
  return [...new Set(wanted)];
}

/** A limit holds; a request is the least, so that without a limit the sandbox gets what is usual here, or more. */
function limitsOf({ definition: { resources } }: SandboxCreateRequest) {
  if (resources === undefined) return {};
  const { milliCpu, milliCpuMax, memoryMb, memoryMbMax } = resources;
  const cpu = milliCpuMax > 0 ? milliCpuMax : Math.max(milliCpu, usualMilliCpu);
  return { cpu: cpu / 1000, memoryMb: memoryMbMax > 0 ? memoryMbMax : Math.max(memoryMb, usualMemoryMb) };
}

/** For the stand-in to end a sandbox in its own way. */
const graceMs = 10 * 60_000;

const usualMilliCpu = 2000;
const usualMemoryMb = 4096;
