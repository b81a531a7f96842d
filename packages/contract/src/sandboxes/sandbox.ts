import { z } from "zod";
import { type ExecId, execIdSchema, type SandboxId, type SnapshotId, snapshotIdSchema } from "../base/ids.ts";
import { type InjectedSecret, type NetworkPolicy, networkPolicySchema } from "./network.ts";

const minuteMs = 60_000;
const hourMs = 60 * minuteMs;
export const maxLifetimeMs = 24 * hourMs;

export const absolutePathSchema = z
  .string()
  .max(4096)
  .regex(/^\/[^\0]*$/, "expected an absolute path");
const envSchema = z.record(
  z.string().regex(/^[A-Za-z_][A-Za-z0-9_]{0,255}$/, "expected a variable name"),
  z
    .string()
    .max(128 * 1024)
    .regex(/^[^\0]*$/),
);
const packageName = z
  .string()
  .min(1)
  .max(214)
  .regex(/^[A-Za-z0-9@][^\s;|&$`"'<>\\]*$/, "expected a package name, with a version if wanted");

const namedImages = ["default", "host", "debian", "node20", "node22", "node24"] as const;

/** A base plus packages and commands. Built once, cached by content. */
export const customImageSchema = z.strictObject({
  base: z.enum(namedImages).default("default"),
  apt: z.array(packageName).max(256).default([]),
  npm: z.array(packageName).max(256).default([]),
  pip: z.array(packageName).max(256).default([]),
  /** Shell commands, run in order as root inside the image. */
  commands: z
    .array(
      z
        .string()
        .min(1)
        .max(64 * 1024),
    )
    .max(256)
    .default([]),
});

export const imageSchema = z.union([z.enum(namedImages), customImageSchema]);
export type CustomImage = z.output<typeof customImageSchema>;
export type Image = z.output<typeof imageSchema>;

export const limitsSchema = z.strictObject({
  cpu: z.number().min(0.1).max(64).default(2),
  memoryMb: z.int().min(32).max(1_048_576).default(4096),
  diskMb: z.int().min(8).max(10_485_760).default(10_240),
  processes: z.int().min(16).max(32_768).default(512),
});
export type Limits = z.output<typeof limitsSchema>;

/** The name of a directory of programs that the host has set up. */
const toolNameSchema = z
  .string()
  .regex(/^[a-z0-9][a-z0-9._-]{0,63}$/, "expected the name of a tool: small letters, digits, . _ -");

export const createSandboxSchema = z.strictObject({
  image: imageSchema.default("default"),
  /** Starts from this snapshot; its image replaces `image`. */
  snapshot: snapshotIdSchema.optional(),
  ...limitsSchema.shape,
  /** Counted from creation; a keep-alive extends it, never past 24 hours. */
  lifetimeMs: z.int().min(100).max(maxLifetimeMs).default(hourMs),
  /** Sleeps after this long without use; null: never. */
  idleMs: z
    .int()
    .min(100)
    .nullable()
    .default(20 * minuteMs),
  /** A sleeping sandbox is stopped, with a snapshot, after this long. */
  sleepingMs: z.int().min(100).default(maxLifetimeMs),
  /** Snapshots a running sandbox this often; null: never. */
  checkpointMs: z.int().min(1000).nullable().default(null),
  /** How long before an end by time the `expiring` event comes. */
  expiringGraceMs: z.int().min(0).default(minuteMs),
  /** What an end by time, memory or disk does: `stop` keeps the files, `destroy` does not. */
  onEnd: z.enum(["stop", "destroy"]).default("stop"),
  workdir: absolutePathSchema.default("/workspace"),
  env: envSchema.default({}),
  /** As env, but never shown again by any call. */
  secrets: envSchema.default({}),
  ports: z.array(z.int().min(1).max(65535)).max(64).default([3000, 5173]),
  network: networkPolicySchema,
  labels: z.record(z.string().max(128), z.string().max(1024)).default({}),
  /** Names of tools: each is there, read-only, in the sandbox's tools directory. */
  tools: z
    .array(toolNameSchema)
    .max(32)
    .refine((names) => new Set(names).size === names.length, "name each tool once")
    .default([]),
  gpu: z.string().optional(),
  user: z.enum(["agent", "root"]).default("agent"),
  /** A retried create with the same key answers with the first one's sandbox. */
  idempotencyKey: z.string().min(1).max(256).optional(),
});
export type CreateSandbox = z.output<typeof createSandboxSchema>;
export type CreateSandboxInput = z.input<typeof createSandboxSchema>;

export const sandboxStates = ["creating", "running", "sleeping", "stopped", "error"] as const;
export type SandboxState = (typeof sandboxStates)[number];

/** Why a sandbox is in the state it is in. */
export const stateReasons = [
  "requested",
  "started",
  "woken",
  "idle",
  "finished",
  "expired",
  "slept_out",
  "killed",
  "out_of_memory",
  "out_of_disk",
  /** The machine itself is short of disk, and this sandbox was writing. */
  "host_out_of_disk",
  "start_failed",
  "provider_lost",
  "budget",
] as const;
export type StateReason = (typeof stateReasons)[number];

export interface SandboxInfo {
  readonly id: SandboxId;
  readonly provider: string;
  readonly image: Image;
  readonly snapshot: SnapshotId | null;
  readonly state: SandboxState;
  readonly reason: StateReason;
  readonly createdAt: number;
  readonly stateChangedAt: number;
  readonly expiresAt: number;
  readonly limits: Limits;
  readonly workdir: string;
  readonly user: "agent" | "root";
  readonly ports: readonly number[];
  readonly tools: readonly string[];
  readonly labels: Readonly<Record<string, string>>;
  /** Without the values of injected secrets. */
  readonly network: Omit<NetworkPolicy, "secrets"> & { readonly secrets: readonly Omit<InjectedSecret, "value">[] };
}

export const execRequestSchema = z
  .strictObject({
    /** Chosen by the caller to make a retried start attach instead of running twice. */
    id: execIdSchema.optional(),
    argv: z
      .array(
        z
          .string()
          .max(128 * 1024 - 1)
          .regex(/^[^\0]*$/),
      )
      .min(1)
      .max(4096)
      .optional(),
    /** Run by `sh -c`. Give this or argv. */
    shell: z
      .string()
      .min(1)
      .max(128 * 1024 - 1)
      .regex(/^[^\0]*$/)
      .optional(),
    cwd: z
      .string()
      .min(1)
      .max(4096)
      .regex(/^[^\0]*$/)
      .optional(),
    env: envSchema.default({}),
    /** `open` keeps standard input for write() and end(); else the command reads end of file. */
    stdin: z.enum(["none", "open"]).default("none"),
    timeoutMs: z.int().min(1).nullable().optional(),
    pty: z.strictObject({ cols: z.int().min(1).max(1000), rows: z.int().min(1).max(1000) }).optional(),
    /** A background command has no timeout unless one is given, and does not keep the sandbox awake. */
    background: z.boolean().default(false),
  })
  .refine((request) => (request.argv === undefined) !== (request.shell === undefined), "give either argv or shell");
export type ExecRequest = z.output<typeof execRequestSchema>;
export type ExecRequestInput = z.input<typeof execRequestSchema>;

export const defaultExecTimeoutMs = 300_000;
/** Output of one exec that is kept for attach. Live readers get all of it. */
export const execLogLimitBytes = 64 * 1024 * 1024;

/** How many bytes of each stream a reader has already. */
export interface ExecOffsets {
  readonly stdout: number;
  readonly stderr: number;
}

export type ExecChunk =
  | { readonly type: "stdout" | "stderr"; readonly offset: number; readonly data: Uint8Array }
  /** The kept log ends here; what came after is gone for this reader. */
  | { readonly type: "output_truncated" };

/** `lost`: the command's end was not observed. Never read it as success. */
export const execEndReasons = ["exited", "signaled", "timeout", "killed", "out_of_memory", "lost"] as const;
export type ExecEndReason = (typeof execEndReasons)[number];

export interface ExecExit {
  readonly reason: ExecEndReason;
  /** Null unless the reason is `exited`. */
  readonly exitCode: number | null;
  /** For instance SIGKILL; null when the command was not ended by a signal. */
  readonly signal: string | null;
  readonly durationMs: number;
  readonly stdoutBytes: number;
  readonly stderrBytes: number;
}

export interface ExecInfo {
  readonly id: ExecId;
  readonly argv: readonly string[];
  readonly startedAt: number;
  readonly background: boolean;
  /** Null while it runs. */
  readonly exit: ExecExit | null;
}

export type FileType = "file" | "directory" | "symlink" | "other";

export interface FileInfo {
  /** Absolute path inside the sandbox. */
  readonly path: string;
  readonly type: FileType;
  readonly size: number;
  /** Permission bits. */
  readonly mode: number;
  readonly modifiedAt: number;
  readonly symlinkTarget: string | null;
}

export interface FileChange {
  readonly type: "created" | "modified" | "removed";
  readonly path: string;
}

export interface SearchMatch {
  readonly path: string;
  readonly line: number;
  readonly text: string;
}

export interface SnapshotInfo {
  readonly id: SnapshotId;
  readonly name: string | null;
  readonly sandbox: SandboxId;
  readonly image: Image;
  readonly createdAt: number;
  readonly expiresAt: number | null;
  /** Storage that only this snapshot's own layer takes. */
  readonly bytes: number;
}

/** What a destroy has proven gone. */
export interface DestroyReceipt {
  readonly sandbox: SandboxId;
  readonly processesEnded: number;
  readonly processesGone: true;
  readonly filesGone: true;
  readonly destroyedAt: number;
}

export type { ExecId, NetworkPolicy, SandboxId, SnapshotId };
