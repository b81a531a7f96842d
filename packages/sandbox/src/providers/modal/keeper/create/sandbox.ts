import { posix } from "node:path";
import { maxLifetimeMs, type SandboxId } from "@slipway/contract";
import type { SandboxCreateParams } from "modal";
import { commandUid, inside, linkPort, previewPorts, runTag } from "../../inside.ts";
import type { Run, SandboxRecord } from "../../record.ts";
import { checkGpu } from "./gpu.ts";
import { allowlistsOf } from "./network.ts";

/** Modal counts physical cores, of two processors each, and gives no less than an eighth of one. */
const processorsPerCore = 2;
const leastCores = 0.125;
/** For the snapshot that a stop takes, before the sandbox ends itself. */
export const graceMs = 2 * 60_000;

/** A tag's value at Modal. */
const taggable = /^[\w.:/-]{1,63}$/;

export interface CreateParts {
  readonly record: SandboxRecord;
  readonly run: Run;
  /** Of every sandbox of this keeper. */
  readonly tags: Readonly<Record<string, string>>;
  readonly regions: readonly string[];
  readonly registries: readonly string[];
  /** The directory of our programs in the store. */
  readonly programs: string;
}

export function paramsOf({
  record,
  run,
  tags,
  regions,
  registries,
  programs,
}: CreateParts): SandboxCreateParams & { name: string } {
  const { request, network } = record;
  const cores = Math.max(request.cpu / processorsPerCore, leastCores);
  return {
    name: run.name,
    tags: { ...labelTags(request.labels), ...tags, ...tagsOf(record.id, run.name) },
    command: ["/bin/sh", `${inside.store}/${programs}/boot.sh`],
    // Ours ends it sooner: see `graceMs`.
    timeoutMs: maxLifetimeMs,
    // What it uses is what it has asked for, and no more is paid.
    cpu: cores,
    cpuLimit: cores,
    memoryMiB: request.memoryMb,
    memoryLimitMiB: request.memoryMb,
    ...(request.gpu !== undefined && { gpu: checkGpu(request.gpu) }),
    ...(regions.length > 0 && { regions: [...regions] }),
    env: environmentOf(record),
    encryptedPorts: [linkPort, ...previewPorts(request).map(({ publicPort }) => publicPort)],
    ...allowlistsOf(network, registries),
  };
}

function tagsOf(id: SandboxId, name: string): Record<string, string> {
  return { "slipway-sandbox": id, [runTag]: name };
}

/** So that a person who looks at Modal's pages sees whose a sandbox is: its build, its attempt. */
function labelTags(labels: Readonly<Record<string, string>>): Record<string, string> {
  return Object.fromEntries(
    Object.entries(labels).filter(([name, value]) => taggable.test(name) && taggable.test(value)),
  );
}

/** For the program that is the sandbox's command. No command inside sees any of it. */
function environmentOf({ id, key, request, expiresAt, tools }: SandboxRecord): Record<string, string> {
  const previews = previewPorts(request).map(({ port, publicPort }) => `${publicPort}=${port}`);
  return {
    SLIPWAY_LINK_KEY: key,
    SLIPWAY_LINK_PORT: String(linkPort),
    SLIPWAY_LINK_UNTIL: String(expiresAt + graceMs),
    SLIPWAY_LINK_STATE: `${inside.state}/${id}`,
    SLIPWAY_LINK_USER: `${commandUid}:${commandUid}`,
    SLIPWAY_LINK_PROCESSES: String(request.processes),
    SLIPWAY_LINK_PREVIEWS: previews.join(",") || "none",
    SLIPWAY_LINK_CHANNEL: inside.channel,
    SLIPWAY_WORKDIR: posix.resolve("/", request.workdir),
    SLIPWAY_TOOLS: tools.map(({ name, digest }) => `${name}=${digest}`).join(" "),
  };
}
