import { execFile } from "node:child_process";
import { constants, lstat, readFile, statfs } from "node:fs/promises";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { canAccess } from "../../../state-files.ts";
import { type Finding, fail, ok, warn } from "../../finding.ts";
import { sandboxUid as defaultSandboxUid } from "../launch/launch.ts";
import { defaultMinFreeMb, maxStateDirLength } from "../layout.ts";
import { detectCgroups, type LimitKind, type Mechanism } from "../limits/cgroup.ts";
import { probeSandbox } from "./probe.ts";

export interface InspectOptions {
  readonly stateDir: string;
  readonly environment: Readonly<Record<string, string | undefined>>;
  readonly sandboxUid?: number | undefined;
  readonly minFreeMb?: number | undefined;
}

/** Checks whether this host can run local sandboxes, and which limits are weak. Leaves nothing behind. */
export async function inspectHost(options: InspectOptions): Promise<Finding[]> {
  const { stateDir, environment, sandboxUid, minFreeMb = defaultMinFreeMb } = options;
  const path = environment["PATH"] ?? "/usr/local/bin:/usr/bin:/bin";
  const program = (name: string, action: string) => inspectProgram(name, path, action);
  const findings = await Promise.all([
    inspectUser(sandboxUid ?? defaultSandboxUid),
    inspectKernel(),
    inspectUserNamespaces(),
    inspectMergedUsr(),
    inspectBubblewrap(path),
    inspectStateDirectory(stateDir, minFreeMb),
    inspectSandbox(stateDir, path, sandboxUid ?? defaultSandboxUid),
    inspectLimits(),
    program("cc", "Install a C compiler (Debian and Ubuntu: apt-get install gcc libc6-dev)."),
    program("git", "Install git: builds keep their work in it."),
    program("debootstrap", "Install debootstrap to use the `debian` and `nodeXX` images."),
  ]);
  return findings.flat();
}

async function inspectUser(sandboxUid: number): Promise<Finding> {
  const uid = process.getuid?.() ?? -1;
  if (uid !== 0) return ok("user", `uid ${uid}; sandboxes run as this user, in their own namespaces`);
  return ok("user", `root; sandboxes run as uids ${sandboxUid} and ${sandboxUid + 1}`);
}

async function inspectKernel(): Promise<Finding> {
  const release = ((await read("/proc/sys/kernel/osrelease")) ?? "").trim();
  const [major = 0, minor = 0] = release.split(".").map((part) => Number.parseInt(part, 10));
  const new_ = major > 5 || (major === 5 && minor >= 11);
  return new_
    ? ok("kernel", `Linux ${release}`)
    : fail("kernel", `Linux ${release} cannot mount an overlay without root`, "Use Linux 5.11 or newer.");
}

async function inspectUserNamespaces(): Promise<Finding> {
  const name = "user namespaces";
  const setting = async (path: string) => Number((await read(`/proc/sys/${path}`)) ?? Number.NaN);
  const most = await setting("user/max_user_namespaces");
  if (most === 0) return fail(name, "switched off", "Enable them: sysctl -w user.max_user_namespaces=15000");
  if ((await setting("kernel/unprivileged_userns_clone")) === 0) {
    return fail(name, "only root may make them", "Allow them: sysctl -w kernel.unprivileged_userns_clone=1");
  }
  if ((await setting("kernel/apparmor_restrict_unprivileged_userns")) === 1) {
    return warn(
      name,
      "AppArmor restricts them; the trial below shows whether sandboxes start",
      "If it fails: sysctl -w kernel.apparmor_restrict_unprivileged_userns=0, or give slipway-launch and bwrap an AppArmor profile with `userns,`.",
    );
  }
  return ok(name, Number.isNaN(most) ? "no limit known" : `up to ${most}`);
}

async function inspectMergedUsr(): Promise<Finding> {
  if ((await lstat("/bin").catch(() => null))?.isSymbolicLink()) return ok("host image", "/bin is part of /usr");
  const advice = "Use a distribution with a merged /usr, or the `debian` image.";
  return fail("host image", "/bin is a separate directory", advice);
}

const run = promisify(execFile);

async function inspectBubblewrap(path: string): Promise<Finding> {
  const install = "Install bubblewrap 0.8 or newer (Debian and Ubuntu: apt-get install bubblewrap).";
  const program = await findProgram("bwrap", path);
  if (program === null) return fail("bubblewrap", "not found", install);
  const { stdout } = await run(program, ["--version"]).catch(() => ({ stdout: "" }));
  const version = stdout.trim();
  const [, major = "0", minor = "0"] = /(\d+)\.(\d+)/.exec(version) ?? [];
  const new_ = Number(major) > 0 || Number(minor) >= 8;
  return new_ ? ok("bubblewrap", version) : fail("bubblewrap", version || "does not run", install);
}

async function inspectProgram(name: string, path: string, action: string): Promise<Finding> {
  const program = await findProgram(name, `${path}:/usr/sbin:/sbin`);
  return program === null ? warn(name, "not found", action) : ok(name, program);
}

async function findProgram(name: string, path: string): Promise<string | null> {
  for (const directory of path.split(":")) {
    const program = join(directory, name);
    if (await canAccess(program, constants.X_OK)) return program;
  }
  return null;
}

const lowSpaceBytes = 2 * 1024 ** 3;

async function inspectStateDirectory(stateDir: string, minFreeMb: number): Promise<Finding> {
  const name = "state directory";
  if (stateDir.length > maxStateDirLength) {
    const detail = `${stateDir} is longer than ${maxStateDirLength} characters`;
    return fail(name, detail, "Choose a shorter SLIPWAY_STATE_DIR.");
  }
  const existing = await nearestExisting(stateDir);
  if (!(await canAccess(existing, constants.W_OK))) {
    return fail(name, `${existing} is not writable`, "Choose another SLIPWAY_STATE_DIR, or change its owner.");
  }
  const { uid } = await lstat(existing);
  if (existing === stateDir && uid !== process.getuid?.()) {
    return fail(name, `${stateDir} belongs to uid ${uid}`, "Use a state directory of your own.");
  }
  const { bavail, bsize } = await statfs(existing);
  const free = `${((bavail * bsize) / 1024 ** 3).toFixed(1)} GB free`;
  if (bavail * bsize < minFreeMb * 1024 ** 2) {
    const detail = `${stateDir}, ${free}: less than the ${minFreeMb} MB that sandboxes must leave free`;
    return fail(name, detail, "Make room, choose a larger disk, or set a smaller SLIPWAY_MIN_FREE_MB.");
  }
  if (bavail * bsize < lowSpaceBytes) return warn(name, `${stateDir}, ${free}`, "Make room, or choose a larger disk.");
  return ok(name, `${stateDir}, ${free}`);
}

async function inspectSandbox(stateDir: string, path: string, sandboxUid: number): Promise<Finding[]> {
  const bwrap = await findProgram("bwrap", path);
  const launch = fileURLToPath(new URL("../../../../native/build/slipway-launch", import.meta.url));
  const place = await nearestExisting(stateDir);
  if (!(await canAccess(launch, constants.X_OK))) {
    return [fail("native programs", "not compiled", "Run `npm run setup`; it needs a C compiler.")];
  }
  if (bwrap === null || !(await canAccess(place, constants.W_OK))) return [];
  const failure = await probeSandbox({ place, launch, bwrap, sandboxUid });
  return [
    failure === null
      ? ok("trial sandbox", "overlay, namespaces and seccomp filter work on the state directory's file system")
      : fail("trial sandbox", failure, trialAction(failure)),
  ];
}

function trialAction(failure: string): string {
  if (/slipway-launch: (enter|open) .*Permission denied/.test(failure)) {
    return "Let others pass through the directories above SLIPWAY_STATE_DIR (chmod o+x), or choose another.";
  }
  if (/namespace|uid_map|Permission denied/.test(failure))
    return "Allow user namespaces; see the finding on them above.";
  if (/overlay/.test(failure)) return "Put SLIPWAY_STATE_DIR on ext4, xfs, btrfs or tmpfs.";
  return "See the message: it comes from the launcher or bubblewrap.";
}

const withoutCgroup: Readonly<Record<LimitKind, string>> = {
  memory: "each process by RLIMIT_DATA; no limit on all of them together",
  cpu: "not limited",
  pids: "by RLIMIT_NPROC",
  freeze: "by SIGSTOP",
};

async function inspectLimits(): Promise<Finding[]> {
  const { mechanisms } = await detectCgroups();
  return (Object.entries(mechanisms) as [LimitKind, Mechanism][]).map(([kind, mechanism]) => {
    const name = kind === "freeze" ? "sleep" : `${kind} limit`;
    if (mechanism !== "none") return ok(name, `by ${mechanism}`);
    const action = "Run as root, or in a delegated group: systemd-run --user --scope -p Delegate=yes slipway ...";
    return kind === "pids" || kind === "freeze"
      ? ok(name, withoutCgroup[kind])
      : warn(name, withoutCgroup[kind], action);
  });
}

async function nearestExisting(path: string): Promise<string> {
  return (await canAccess(path)) || path === "/" ? path : nearestExisting(dirname(path));
}

async function read(path: string): Promise<string | null> {
  return readFile(path, "utf8").catch(() => null);
}
