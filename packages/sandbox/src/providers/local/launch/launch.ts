import { relative } from "node:path";
import { SlipwayError } from "@slipway/contract";
import type { BoxLayout } from "../layout.ts";
import type { CgroupPlan } from "../limits/cgroup.ts";

/**
 * The uid of sandboxes when Slipway runs as root. It owns their layers and boxes. The next one is uid 1000 of sandboxes
 * with a second user.
 */
export const sandboxUid = 61_100;

/** Paths inside of what the host provides. */
const inside = {
  agent: "/run/slipway-agent",
  egressDirectory: "/run/slipway",
  egressSocket: "/run/slipway/egress.sock",
  hostname: "slipway",
} as const;

/** The tool directories are below it, inside. */
export const toolsInside = "/opt";

/** The host channel's socket inside. */
export const channelInside = `${inside.egressDirectory}/run.sock`;

/** A uid and gid on the host. */
export interface Identity {
  readonly uid: number;
  readonly gid: number;
}

/** Files of the host's /usr and /proc to cover, because they may show the host's secrets. See `hostMasks`. */
export interface HostMasks {
  /** The host has a /usr/etc, which the skeleton's covers. */
  readonly usrEtc: boolean;
  /** Files in /usr that read as empty. */
  readonly emptied: readonly string[];
  /** Files in /proc that cannot be read. */
  readonly closed: readonly string[];
}

export interface LaunchSpec {
  readonly layers: string;
  readonly mountPoint: string;
  readonly box: BoxLayout;
  /** Ids of layers, topmost first. */
  readonly lowers: readonly string[];
  /** `host`: the skeleton is the lowest layer, and /usr is the host's, read-only. `rootfs`: the layers hold everything. */
  readonly root: "host" | "rootfs";
  readonly user: "agent" | "root";
  /** With root inside: uid 1000 is a user of its own. Only root of the host can provide it. */
  readonly secondUser: boolean;
  readonly workdir: string;
  readonly limits: AgentLimits;
  readonly egress: boolean;
  /** Directories of the host, read-only in the sandbox below `toolsInside`. */
  readonly tools: readonly { readonly name: string; readonly directory: string }[];
  readonly forwards: readonly { readonly port: number; readonly to: string }[];
  /** Host paths that the sandboxes' uid can reach. */
  readonly programs: { readonly bwrap: string; readonly agent: string; readonly seccomp: string };
  /** Null when Slipway is an ordinary user: then sandboxes run as that user. */
  readonly identity: Identity | null;
  readonly cgroup: CgroupPlan;
  readonly masks: HostMasks;
}

/** Limits that pid 1 sets, in addition to control groups. */
export interface AgentLimits {
  readonly processes: number;
  readonly fileBytes: number;
  /** 0: none. */
  readonly dataBytes: number;
}

/**
 * Arguments of `slipway-launch`. Its standard output carries the status (see `parseLaunchStatus`), its standard error
 * what failed. It becomes bubblewrap's outer process, which ends with the sandbox.
 */
export function launchArguments(spec: LaunchSpec): string[] {
  return ["run", ...privileged(spec), ...startArguments(spec)];
}

/**
 * Arguments of a launcher that enters its control groups and makes the box `spare` ahead. After `waitingLine` it takes
 * `startArguments` on its standard input.
 */
export function standbyArguments(identity: Identity | null, directories: readonly string[], spare: string): string[] {
  return ["run", "--wait", ...flag("--spare", spare), ...privileged({ identity, cgroup: { directories, sets: [] } })];
}

export const waitingLine = "waiting\n";

/** What a launcher that stands by still needs. */
export type StartSpec = Omit<LaunchSpec, "identity" | "cgroup">;

export function startArguments(spec: StartSpec): string[] {
  return [
    ...flag("--layers", spec.layers),
    ...flag("--box", relative(spec.layers, spec.box.root)),
    ...flag("--mount", spec.mountPoint),
    ...flag("--seccomp", spec.programs.seccomp),
    ...spec.lowers.flatMap((id) => flag("--lower", `${id}/fs`)),
    ...mountPoints(spec).flatMap((path) => flag("--mount-point", path)),
    ...flag("--directory", spec.workdir),
    ...(spec.secondUser ? ["--second-user"] : []),
    "--",
    spec.programs.bwrap,
    ...namespaces(spec),
    ...fileSystem(spec),
    "--",
    inside.agent,
    ...agentArguments(spec),
  ];
}

function privileged({ identity, cgroup }: Pick<LaunchSpec, "identity" | "cgroup">): string[] {
  return [
    ...(identity === null ? [] : [...flag("--uid", identity.uid), ...flag("--gid", identity.gid)]),
    ...cgroup.directories.flatMap((directory) => flag("--cgroup", directory)),
    ...cgroup.sets.flatMap(({ file, value }) => flag("--set", `${file}=${value}`)),
  ];
}

/** Arguments for the launcher's standard input: each ends with a NUL, so none may hold one. */
export function joinArguments(args: readonly string[]): string {
  const split = args.find((argument) => argument.includes("\0"));
  if (split !== undefined) throw new SlipwayError("internal", `An argument holds a NUL: ${JSON.stringify(split)}`);
  return args.map((argument) => `${argument}\0`).join("");
}

export interface LaunchStatus {
  /** The host's pid of the sandbox's pid 1. Killing it ends the sandbox. */
  readonly childPid: number | null;
  readonly ready: boolean;
}

/** Parses the status so far: bubblewrap's JSON, then the agent's `ready`. */
export function parseLaunchStatus(text: string): LaunchStatus {
  const childPid = /"child-pid": (\d+)/.exec(text)?.[1];
  return { childPid: childPid === undefined ? null : Number(childPid), ready: text.endsWith("ready\n") };
}

const longestComplaint = 4096;

/** The error messages of the launcher and bubblewrap, without the status. */
export function complaintIn(text: string): string {
  return text
    .replace(waitingLine, "")
    .replace(/^\{\n[^}]*\}\n/m, "")
    .trim()
    .slice(0, longestComplaint);
}

/** Descriptors that the launcher passes to bubblewrap; see native/launch/run.c. */
const infoFd = 6;
const seccompFd = 7;
const userNamespaceFd = 8;

/** What dpkg and package installers need. They count only inside the sandbox's user namespace. */
const rootCapabilities = "CHOWN DAC_OVERRIDE FOWNER FSETID SETUID SETGID KILL NET_BIND_SERVICE".split(" ");

/** Bubblewrap leaves the descriptor of `--userns` open; `--block-fd` finds nothing to read there and closes it. */
const secondUserNamespace = [
  ...[...flag("--userns", userNamespaceFd), ...flag("--block-fd", userNamespaceFd)],
  "--assert-userns-disabled",
];

function namespaces({ user, secondUser }: StartSpec): string[] {
  const id = user === "root" ? 0 : 1000;
  return [
    ...(secondUser ? secondUserNamespace : ["--unshare-user", "--disable-userns"]),
    ...["--unshare-pid", "--unshare-net", "--unshare-ipc", "--unshare-uts", "--unshare-cgroup-try"],
    ...["--as-pid-1", "--new-session", "--clearenv"],
    ...flag("--uid", id),
    ...flag("--gid", id),
    ...flag("--hostname", inside.hostname),
    ...flag("--chdir", "/"),
    ...flag("--cap-drop", "ALL"),
    ...(user === "root" ? rootCapabilities.flatMap((name) => flag("--cap-add", `CAP_${name}`)) : []),
    ...flag("--seccomp", seccompFd),
    ...flag("--info-fd", infoFd),
  ];
}

const shmBytes = 256 * 1024 * 1024;
const runBytes = 16 * 1024 * 1024;

function fileSystem(spec: StartSpec): string[] {
  return [
    ...["--bind", spec.mountPoint, "/"],
    ...(spec.root === "host" ? hostUsr(spec) : []),
    ...["--proc", "/proc", ...spec.masks.closed.flatMap((path) => ["--ro-bind", "/dev/null", path])],
    // Through /proc its owner could change much of a namespace, and of pid 1, which has the same uid.
    ...["--remount-ro", "/proc"],
    // A writable /dev would be a tmpfs of half the host's memory.
    ...["--dev", "/dev", "--perms", "1777", "--size", String(shmBytes), "--tmpfs", "/dev/shm", "--remount-ro", "/dev"],
    ...["--size", String(runBytes), "--tmpfs", "/run"],
    ...["--ro-bind", spec.programs.agent, inside.agent],
    ...(spec.egress ? ["--ro-bind", spec.box.egress, inside.egressDirectory] : []),
    ...spec.tools.flatMap(({ name, directory }) => ["--ro-bind", directory, toolInside(name)]),
  ];
}

/** The host's /usr hides the overlay's, so what is bound from the overlay is the skeleton's. */
function hostUsr({ mountPoint, masks }: StartSpec): string[] {
  return [
    ...["--ro-bind", "/usr", "/usr", "--bind", `${mountPoint}/usr/local`, "/usr/local"],
    ...(masks.usrEtc ? ["--ro-bind", `${mountPoint}/usr/etc`, "/usr/etc"] : []),
    ...masks.emptied.flatMap((path) => ["--ro-bind", `${mountPoint}/usr/etc/empty`, path]),
  ];
}

function mountPoints({ root, tools }: StartSpec): string[] {
  const ofHost = root === "host" ? ["/usr/local", "/usr/etc"] : [];
  return ["/dev", "/proc", "/run", ...ofHost, ...tools.map(({ name }) => toolInside(name))];
}

function toolInside(name: string): string {
  return `${toolsInside}/${name}`;
}

function agentArguments({ limits, egress, forwards }: StartSpec): string[] {
  return [
    ...flag("--processes", limits.processes),
    ...flag("--file-bytes", limits.fileBytes),
    ...flag("--data-bytes", limits.dataBytes),
    ...(egress ? flag("--egress", inside.egressSocket) : []),
    ...forwards.flatMap(({ port, to }) => flag("--forward", `${port}=${to}`)),
  ];
}

function flag(name: string, value: string | number): [string, string] {
  return [name, String(value)];
}
