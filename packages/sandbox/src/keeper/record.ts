import { readFileSync, rmSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import {
  type CreateSandbox,
  maxLifetimeMs,
  type NetworkPolicy,
  type SandboxId,
  type SandboxInfo,
  type SandboxState,
  SlipwayError,
  type SnapshotId,
  type SnapshotInfo,
  type StateReason,
} from "@slipway/contract";
import { namesIn, replaceFile } from "../state-files.ts";

/**
 * What a keeper knows of a sandbox: one JSON file each, which only the keeper writes. A provider's records extend it.
 * Not synced to disk: a machine that loses power loses at most what changed last.
 */
export interface SandboxRecord {
  readonly id: SandboxId;
  /** With its secrets: only the owner can read the file. Never changes: creates with the same key compare it. */
  readonly request: CreateSandbox;
  /** The current policy. */
  readonly network: NetworkPolicy;
  readonly state: SandboxState;
  readonly reason: StateReason;
  readonly createdAt: number;
  readonly stateChangedAt: number;
  /** False until its create has succeeded. */
  readonly wasRunning: boolean;
  /** End by time while running. Sleep pauses the lifetime. */
  readonly expiresAt: number;
  /** The latest end that a keep-alive can set. */
  readonly endsBy: number;
  readonly tools: readonly Tool[];
  /** The snapshot that a sandbox whose sleep ran out must still leave. */
  readonly owedSnapshot: SnapshotId | null;
}

/** What a tool's name stood for when the sandbox was created: the tree `tools/<digest>`. */
export interface Tool {
  readonly name: string;
  readonly digest: string;
}

/** A snapshot's record: what is common, and the origin of its files as the provider knows it. */
export type SnapshotRecord<O = unknown> = SnapshotInfo & {
  /** Taken periodically, and removed when newer ones exist. */
  readonly checkpoint: boolean;
} & O;

/** The record of a sandbox that is about to start for the first time. */
export function newRecord(
  { id, request, tools }: Pick<SandboxRecord, "id" | "request" | "tools">,
  nowMs: number,
  longestLifeMs?: number,
): SandboxRecord {
  return {
    id,
    request,
    network: request.network,
    state: "creating",
    reason: "requested",
    createdAt: nowMs,
    stateChangedAt: nowMs,
    wasRunning: false,
    ...lifeFrom(nowMs, request, longestLifeMs),
    tools,
    owedSnapshot: null,
  };
}

/** When a sandbox that starts now ends, and what a keep-alive can move that to. */
export function lifeFrom(
  nowMs: number,
  { lifetimeMs }: Pick<CreateSandbox, "lifetimeMs">,
  longestLifeMs: number = maxLifetimeMs,
): Pick<SandboxRecord, "expiresAt" | "endsBy"> {
  return { expiresAt: nowMs + Math.min(lifetimeMs, longestLifeMs), endsBy: nowMs + longestLifeMs };
}

export function writeRecord(path: string, record: unknown): void {
  replaceFile(path, JSON.stringify(record), 0o600);
}

export function removeRecord(path: string): void {
  rmSync(path, { force: true });
}

export async function readRecord<T>(path: string): Promise<T | null> {
  try {
    return JSON.parse(await readFile(path, "utf8")) as T;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return null;
    throw error;
  }
}

/** All records of a directory, oldest first. */
export function readRecords<T>(directory: string): T[] {
  const records: T[] = [];
  for (const name of namesIn(directory)) {
    if (!name.endsWith(".json")) continue;
    try {
      records.push(JSON.parse(readFileSync(join(directory, name), "utf8")) as T);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== "ENOENT") throw error;
    }
  }
  return records;
}

/** Adds what records of earlier versions lack. */
export function upToDate<R extends SandboxRecord>(record: R): R {
  const { request, network, tools, owedSnapshot } = record;
  return {
    ...record,
    request: { ...request, tools: request.tools ?? [] },
    network: network ?? request.network,
    tools: tools ?? [],
    owedSnapshot: owedSnapshot ?? null,
  };
}

export function sandboxInfo(recorded: SandboxRecord, provider: string): SandboxInfo {
  const record = upToDate(recorded);
  const { request, network } = record;
  return {
    id: record.id,
    provider,
    image: request.image,
    snapshot: request.snapshot ?? null,
    state: record.state,
    reason: record.reason,
    createdAt: record.createdAt,
    stateChangedAt: record.stateChangedAt,
    expiresAt: record.expiresAt,
    limits: { cpu: request.cpu, memoryMb: request.memoryMb, diskMb: request.diskMb, processes: request.processes },
    workdir: request.workdir,
    user: request.user,
    ports: request.ports,
    tools: request.tools,
    labels: request.labels,
    network: { ...network, secrets: network.secrets.map(({ value: _value, ...named }) => named) },
  };
}

export function snapshotInfo({ id, name, sandbox, image, createdAt, expiresAt, bytes }: SnapshotInfo): SnapshotInfo {
  return { id, name, sandbox, image, createdAt, expiresAt, bytes };
}

export function sandboxNotFound(id: SandboxId): SlipwayError {
  return new SlipwayError("sandbox_not_found", `No sandbox ${id}.`);
}

export const liveStates: readonly SandboxState[] = ["creating", "running", "sleeping"];
