import type { Duplex } from "node:stream";
import type {
  CreateSandboxInput,
  CustomImage,
  DestroyReceipt,
  ExecChunk,
  ExecExit,
  ExecId,
  ExecInfo,
  ExecOffsets,
  ExecRequestInput,
  FileChange,
  FileInfo,
  NetworkPolicyInput,
  SandboxEvent,
  SandboxId,
  SandboxInfo,
  SandboxState,
  SearchMatch,
  SnapshotId,
  SnapshotInfo,
} from "@slipway/contract";

/** The port between Slipway and what runs sandboxes. See docs/guides/add-a-provider.md. */
export interface SandboxProvider extends AsyncDisposable {
  readonly name: string;
  readonly capabilities: Capabilities;
  /** Resolves when the sandbox accepts execs. A failed create leaves nothing behind. */
  create(request: CreateSandboxInput, options?: CallOptions): Promise<OwnedSandbox>;
  get(id: SandboxId, options?: CallOptions): Promise<Sandbox>;
  list(filter?: ListFilter, options?: CallOptions): Promise<SandboxInfo[]>;
  readonly snapshots: Snapshots;
  /** Builds and caches an image ahead of the first create that names it. Undefined: it was there. */
  prepareImage(image: string | Partial<CustomImage>, options?: ImageOptions): Promise<BuiltImage | undefined>;
  events(options?: EventOptions): AsyncIterable<SandboxEvent>;
  /** Compares what runs with what is recorded; adopts or ends strays. Also runs on start and on a timer. */
  reconcile(options?: CallOptions): Promise<ReconcileReport>;
}

export interface EventOptions extends CallOptions {
  /** 0, the default: all kept events. */
  readonly after?: number | undefined;
  readonly sandbox?: SandboxId | undefined;
  /** False: only kept events. By default live ones follow, until the signal. */
  readonly follow?: boolean | undefined;
}

/** What a provider can do. It refuses what it lacks with `capability_missing` and fakes nothing. */
export interface Capabilities {
  readonly pty: boolean;
  readonly ptyResize: boolean;
  /** An exec continues, and can be attached to, when the process that started it is gone. */
  readonly execSurvivesCaller: boolean;
  readonly watch: boolean;
  readonly sleep: boolean;
  /** A sleeping sandbox's processes go on when it wakes. Without it they end, as in a stop. */
  readonly sleepKeepsProcesses: boolean;
  readonly stopStart: boolean;
  /** Execs of a sandbox that is asleep or stopped are listed, and can be attached to. */
  readonly logsWhileStopped: boolean;
  readonly snapshotWhileRunning: boolean;
  readonly egressAllowlist: boolean;
  readonly egressSecrets: boolean;
  readonly egressForwards: boolean;
  /** Keeps connections to the policy's ports. Without it, only the default ports may be asked for, and all are open. */
  readonly egressPorts: boolean;
  /** Refused connections are told as events. */
  readonly egressRefusals: boolean;
  readonly previewUrls: boolean;
  readonly customImages: boolean;
  readonly gpu: boolean;
  /** Ends a sandbox that takes more disk than it may. */
  readonly diskLimit: boolean;
  /** Sandboxes of the user `root`. */
  readonly rootUser: boolean;
  /** Programs inside reach the caller's process through a socket: `openChannel`. */
  readonly hostChannel: boolean;
  /** Sandboxes can name tool directories of the host, at no cost for each sandbox. */
  readonly tools: boolean;
}

export interface CallOptions {
  readonly signal?: AbortSignal | undefined;
}

export interface ImageOptions extends CallOptions {
  readonly onProgress?: (line: string) => void;
}

/** What a call has built. */
export interface BuiltImage {
  /** Forgets the image: the next use builds it again. Sandboxes that started from it stay. */
  remove(options?: CallOptions): Promise<void>;
}

export interface ListFilter {
  readonly states?: readonly SandboxState[];
  readonly labels?: Readonly<Record<string, string>>;
}

export interface Sandbox extends RestrictedSandbox {
  snapshot(options?: SnapshotOptions): Promise<SnapshotInfo>;
  /** A new sandbox with this one's files. Inherits what is not overridden. */
  fork(overrides?: ForkOverrides, options?: CallOptions): Promise<OwnedSandbox>;
  sleep(options?: CallOptions): Promise<void>;
  wake(options?: CallOptions): Promise<void>;
  /** Ends all processes, keeps the files. */
  stop(options?: CallOptions): Promise<void>;
  start(options?: CallOptions): Promise<void>;
  /** Ends the processes, deletes the files, and reports what is proven gone. Works in every state. */
  destroy(options?: CallOptions): Promise<DestroyReceipt>;
  /** Extends the lifetime to at least this long from now, never past 24 hours from creation. */
  keepAlive(forMs: number, options?: CallOptions): Promise<{ expiresAt: number }>;
  setNetwork(policy: NetworkPolicyInput, options?: CallOptions): Promise<void>;
  /** A stable address with an access token, for a browser. */
  previewUrl(port: number, options?: CallOptions): Promise<string>;
  /**
   * Listens for programs inside. Survives sleep and wake, stop and start; ends with the sandbox, the provider or the
   * process, after which anyone can open it again. Fails with `channel_in_use` while another has it. Its connections
   * are untrusted and do not keep the sandbox awake.
   */
  openChannel(options?: CallOptions): Promise<HostChannel>;
  /** The view for agents and tools: without stop, network policy and credentials. */
  restricted(): RestrictedSandbox;
}

/** The host's end of a socket inside a sandbox. Disposing of it cuts its connections. */
export interface HostChannel extends AsyncDisposable {
  /** Path of the unix socket inside. A dial fails while nobody listens, so programs inside must retry. */
  readonly inside: string;
  /** Yields each connection that programs inside make, until the signal or the channel's end. The consumer closes it. */
  connections(options?: CallOptions): AsyncIterable<Duplex>;
}

/** For whoever created it: leaving the `await using` scope destroys the sandbox. */
export type OwnedSandbox = Sandbox & AsyncDisposable;

export interface RestrictedSandbox {
  readonly id: SandboxId;
  /** Where the tool directories are inside, each by its name. */
  readonly toolsDirectory: string;
  info(options?: CallOptions): Promise<SandboxInfo>;
  /** Resolves when the program has started; fails with `exec_not_started` when it cannot. */
  exec(request: ExecRequestInput, options?: CallOptions): Promise<Exec>;
  /** A running or ended exec, its output from the given bytes on. */
  attach(id: ExecId, options?: CallOptions & { from?: ExecOffsets | undefined }): Promise<Exec>;
  execs(options?: CallOptions): Promise<ExecInfo[]>;
  readonly files: SandboxFiles;
  /** A byte pipe to a port inside. */
  connect(port: number, options?: CallOptions): Promise<Duplex>;
}

/** A handle on a command. Disposing of it closes the connection; the command continues. */
export interface Exec extends AsyncDisposable {
  readonly id: ExecId;
  /** Can be read once. A slow reader slows the command. Ends after the last byte; then `wait` resolves. */
  output(options?: CallOptions): AsyncIterable<ExecChunk>;
  /** Resolves when the command has the bytes, or a bounded buffer does. */
  write(data: Uint8Array | string, options?: CallOptions): Promise<void>;
  /** Ends standard input. */
  end(options?: CallOptions): Promise<void>;
  /** Sends a signal to the command, or to all processes it started. */
  signal(name: NodeJS.Signals, options?: CallOptions & { tree?: boolean }): Promise<void>;
  /** TERM, a grace period, then KILL, to the whole process tree. Resolves when all of it is gone. */
  kill(options?: CallOptions & { graceMs?: number }): Promise<void>;
  resize(size: { cols: number; rows: number }, options?: CallOptions): Promise<void>;
  /** The observed exit. Discards output that nobody reads. */
  wait(options?: CallOptions): Promise<ExecExit>;
}

export type Bytes = Uint8Array | string | AsyncIterable<Uint8Array>;

export interface SandboxFiles {
  read(path: string, options?: CallOptions & { offset?: number; length?: number }): AsyncIterable<Uint8Array>;
  /** Atomic: readers see the old content or the new one. Makes parent directories. */
  write(path: string, content: Bytes, options?: CallOptions & { mode?: number }): Promise<{ bytes: number }>;
  stat(path: string, options?: CallOptions & { followSymlink?: boolean }): Promise<FileInfo>;
  /** Entries below a directory that match the glob (default: its direct children). */
  list(path: string, options?: CallOptions & { glob?: string }): AsyncIterable<FileInfo>;
  mkdir(path: string, options?: CallOptions & { mode?: number }): Promise<void>;
  /** Also works across layers. */
  move(from: string, to: string, options?: CallOptions & { overwrite?: boolean }): Promise<void>;
  remove(path: string, options?: CallOptions & { recursive?: boolean }): Promise<void>;
  watch(path: string, options?: CallOptions & { recursive?: boolean }): AsyncIterable<FileChange>;
  /** Lines that contain the text, or match the POSIX extended regular expression. */
  search(query: string, options?: CallOptions & SearchOptions): AsyncIterable<SearchMatch>;
  /** Writes a tree below a directory. No entry can leave it. */
  upload(
    path: string,
    entries: AsyncIterable<TreeEntry> | Iterable<TreeEntry>,
    options?: CallOptions,
  ): Promise<{ entries: number; bytes: number }>;
  /** A tree, depth first. It is untrusted: check its paths before writing them anywhere. */
  download(path: string, options?: CallOptions): AsyncIterable<TreeEntry>;
  /** Many small files in one call: path -> content. */
  hydrate(files: Readonly<Record<string, string | Uint8Array>>, options?: CallOptions): Promise<void>;
}

export interface SearchOptions {
  readonly path?: string;
  readonly regex?: boolean;
  readonly glob?: string;
  readonly maxMatches?: number;
}

/** One entry of a tree; its path is relative to the tree's root, with `/`, without `..`. */
export type TreeEntry =
  | { readonly type: "file"; readonly path: string; readonly mode: number; readonly content: Bytes }
  | { readonly type: "directory"; readonly path: string; readonly mode: number }
  | { readonly type: "symlink"; readonly path: string; readonly target: string };

export interface SnapshotOptions extends CallOptions {
  readonly name?: string;
  /** Deletes the snapshot after this long; by default it stays. */
  readonly expiresInMs?: number;
}

export interface Snapshots {
  list(options?: CallOptions): Promise<SnapshotInfo[]>;
  get(id: SnapshotId, options?: CallOptions): Promise<SnapshotInfo>;
  update(
    id: SnapshotId,
    change: { name?: string | null; expiresInMs?: number | null },
    options?: CallOptions,
  ): Promise<SnapshotInfo>;
  /** Refused with `snapshot_in_use` while a sandbox starts from it. */
  delete(id: SnapshotId, options?: CallOptions): Promise<void>;
}

export type ForkOverrides = Partial<Omit<CreateSandboxInput, "image" | "snapshot" | "user">>;

export interface ReconcileReport {
  /** Ran, but were not recorded as running. */
  readonly adopted: readonly SandboxId[];
  /** Were recorded as running, but did not run. */
  readonly lost: readonly SandboxId[];
  /** Ran without a record; ended. */
  readonly ended: readonly string[];
  /** How many unused layers it removed. */
  readonly layersRemoved: number;
}
