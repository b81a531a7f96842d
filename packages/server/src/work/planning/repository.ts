import { lstat } from "node:fs/promises";
import { join } from "node:path";
import { type BuildSource, SlipwayError } from "@slipway/contract";
import type { RepositoryReader } from "@slipway/engine";
import {
  cloneRepo,
  directoryEntries,
  type OwnedSandbox,
  projectPath,
  type RestrictedSandbox,
  type SandboxProvider,
  type TreeEntry,
} from "@slipway/sandbox";
import { diagnose } from "./diagnose.ts";
import { type Installed, installLocked } from "./install.ts";
import { look } from "./look.ts";
import { summarize } from "./summarize.ts";

export interface RepositoryOptions {
  readonly provider: Pick<SandboxProvider, "create" | "get" | "list">;
  /** Null: the build names no repository. */
  source(): Promise<BuildSource | null>;
  /** For git. */
  readonly environment: Readonly<Record<string, string | undefined>>;
  /** Name the build, so that a sandbox left by another process can be found and ended. */
  readonly labels: Readonly<Record<string, string>>;
  readonly limits?: Partial<RepositoryLimits>;
}

/** Limits on an untrusted repository. */
export interface RepositoryLimits {
  readonly entries: number;
  readonly bytes: number;
  /** Larger files are left out, as a plan does not need them. */
  readonly fileBytes: number;
  /** For each of the repository's commands. */
  readonly commandMs: number;
  /** For the look at its app; and, before that, for an installation which only the look needs. */
  readonly lookMs: number;
}

const minuteMs = 60_000;
const usualLimits: RepositoryLimits = {
  entries: 100_000,
  bytes: 1024 ** 3,
  fileBytes: 64 * 1024 ** 2,
  commandMs: 10 * minuteMs,
  lookMs: 2 * minuteMs,
};

/** Reads a repository in a sandbox, made at the first question. None of it runs on the host. */
export function openRepository(options: RepositoryOptions): RepositoryReader & AsyncDisposable {
  const limits = { ...usualLimits, ...options.limits };
  const labels = { ...options.labels, purpose: "planning" };
  let opened: Promise<OwnedSandbox> | undefined;
  let installed: Promise<Installed> | undefined;
  const open = (signal: AbortSignal) => {
    opened ??= bringIn(options, labels, limits, signal);
    return opened;
  };
  const installer = (sandbox: OwnedSandbox, timeoutMs: number, signal: AbortSignal) => () => {
    installed ??= installLocked(sandbox, { timeoutMs, signal });
    return installed;
  };
  return {
    summarize: async ({ signal = never }) => await summarize(await open(signal), signal),
    async diagnose({ signal = never }) {
      const sandbox = await open(signal);
      const { commandMs } = limits;
      return await diagnose(sandbox, { commandMs, install: installer(sandbox, commandMs, signal) }, signal);
    },
    async look({ signal = never }) {
      const sandbox = await open(signal);
      const { lookMs } = limits;
      const install = installer(sandbox, lookMs, signal);
      return await look({ provider: options.provider, sandbox, labels, install, lookMs, signal });
    },
    async [Symbol.asyncDispose]() {
      const sandbox = await opened?.catch(() => undefined);
      // The result stands even if this fails, and the lifetime ends the sandbox.
      await sandbox?.destroy().catch(() => {});
    },
  };
}

const never = new AbortController().signal;

async function bringIn(
  { provider, source, environment }: RepositoryOptions,
  labels: Readonly<Record<string, string>>,
  limits: RepositoryLimits,
  signal: AbortSignal,
): Promise<OwnedSandbox> {
  const from = await source();
  if (from === null) throw new SlipwayError("invalid_request", "the build names no repository to start from");
  const remote = "repository" in from ? remoteOf(from.repository) : undefined;
  await using made = new AsyncDisposableStack();
  const sandbox = made.use(await openImport(provider, labels, remote, signal));
  if (remote !== undefined) await clone(sandbox, remote.href, limits, signal);
  else if ("directory" in from) await upload(sandbox, from.directory, environment, limits, signal);
  made.move();
  return sandbox;
}

/** Makes a sandbox that reaches only the remote, after ending those that another process left under these labels. */
export async function openImport(
  provider: RepositoryOptions["provider"],
  labels: Readonly<Record<string, string>>,
  remote: URL | undefined,
  signal: AbortSignal,
): Promise<OwnedSandbox> {
  for (const { id } of await provider.list({ labels }, { signal })) await (await provider.get(id)).destroy();
  const network = remote === undefined ? {} : { domains: [remote.hostname], ports: [Number(remote.port || 443)] };
  const life = { lifetimeMs: 60 * minuteMs, idleMs: null, onEnd: "destroy" } as const;
  return await provider.create({ ...life, network, labels }, { signal });
}

export function remoteOf(address: string): URL {
  const url = URL.canParse(address) ? new URL(address) : undefined;
  if (url?.protocol === "https:" && url.username === "" && url.password === "") return url;
  const message =
    "can only clone https addresses without a password, because a sandbox holds no keys; name a directory instead";
  throw new SlipwayError("invalid_request", message);
}

async function clone(sandbox: OwnedSandbox, url: string, { commandMs }: RepositoryLimits, signal: AbortSignal) {
  const { exitCode, stderr } = await cloneRepo(sandbox, url, { depth: 1, timeoutMs: commandMs, signal });
  if (exitCode !== 0) throw new SlipwayError("exec_failed", `git cannot clone ${url}: ${stderr.trim().slice(-1000)}`);
  await sandbox.setNetwork({}, { signal });
}

async function upload(
  sandbox: RestrictedSandbox,
  directory: string,
  environment: RepositoryOptions["environment"],
  limits: RepositoryLimits,
  signal: AbortSignal,
): Promise<void> {
  let bytes = 0;
  const walk = {
    signal,
    onLeftOut: () => {},
    onBytes(read: number) {
      bytes += read;
      if (bytes > limits.bytes) throw tooLarge(directory, `${limits.bytes} bytes`);
    },
  };
  await sandbox.files.mkdir(projectPath, { signal });
  const entries = held(directory, directoryEntries(directory, environment, walk), limits);
  try {
    await sandbox.files.upload(projectPath, entries, { signal });
  } catch (error) {
    if (error instanceof SlipwayError || !isAboutDirectory(error)) throw error;
    throw new SlipwayError("invalid_request", `${directory} cannot be read: ${error.code}`, { cause: error });
  }
}

async function* held(
  directory: string,
  entries: AsyncIterable<TreeEntry>,
  limits: RepositoryLimits,
): AsyncGenerator<TreeEntry> {
  let count = 0;
  for await (const entry of entries) {
    if (++count > limits.entries) throw tooLarge(directory, `${limits.entries} files`);
    const isHuge = entry.type === "file" && (await lstat(join(directory, entry.path))).size > limits.fileBytes;
    if (!isHuge) yield entry;
  }
}

function tooLarge(directory: string, most: string): SlipwayError {
  return new SlipwayError("too_large", `${directory} has more than ${most}, which is the limit`);
}

function isAboutDirectory(error: unknown): error is NodeJS.ErrnoException {
  const code = (error as NodeJS.ErrnoException | undefined)?.code;
  return code !== undefined && ["ENOENT", "ENOTDIR", "EACCES", "ELOOP", "EISDIR"].includes(code);
}
