// Makes a checkout ready to run: npm packages, system programs, the sandbox's C programs. Fast if nothing is missing.
// Plain JavaScript without packages: the machine's own Node (20 or newer) runs it before anything is installed.
import { spawn, spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { once } from "node:events";
import {
  accessSync,
  constants,
  existsSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { delimiter, join, relative } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";

const programs = [
  { command: "bwrap", packages: ["bubblewrap"], for: "run", why: "isolates the sandboxes" },
  { command: "git", packages: ["git"], for: "run", why: "carries the work between sandboxes" },
  { command: "debootstrap", packages: ["debootstrap"], for: "run", why: "builds the debian image" },
  { command: "chromium", packages: ["chromium"], for: "run", why: "opens apps as their users do" },
  { command: "cc", packages: ["gcc", "libc6-dev"], for: "run", why: "compiles the sandbox's first process" },
  { command: "curl", packages: ["curl"], for: "test", why: "is an independent client of the egress proxy" },
  { command: "python3", packages: ["python3"], for: "test", why: "runs small programs inside sandboxes" },
  { command: "redis-server", packages: ["redis-server"], for: "test", why: "carries messages of the bridge" },
  { command: "pg_ctlcluster", packages: ["postgresql"], for: "test", why: "holds the records of the store" },
  {
    command: "radosgw",
    packages: ["radosgw", "ceph-mon", "ceph-osd", "ceph-common"],
    for: "test",
    why: "is a real S3 server",
  },
  { command: "setpriv", packages: ["util-linux"], for: "test", why: "runs tests as an ordinary user" },
];

/** npm packages whose hundreds of files every start loads, with their entry files. */
const scattered = [
  { name: "kysely", entries: ["dist/index.js"] },
  { name: "zod", entries: ["index.js", "v4/index.js", "v4/core/index.js", "v4/mini/index.js"] },
];

const root = fileURLToPath(new URL("..", import.meta.url));
const testAgents = join(root, "scripts/test-agents");
const testRestate = join(root, "scripts/test-restate");
const forTests = process.argv.includes("--tests");

class SetupError extends Error {}

try {
  await setUp();
} catch (error) {
  if (!(error instanceof SetupError)) throw error;
  console.error(`set-up: ${error.message}`);
  process.exitCode = 1;
}

async function setUp() {
  if (Number.parseInt(process.versions.node, 10) < 20) {
    throw new SetupError(`Node 20 or newer is required; this is ${process.version}.`);
  }
  const release = await takeTurn();
  try {
    installModules(root, ["--include=dev", "--include=optional"]);
    for (const scatteredPackage of scattered) joinFiles(scatteredPackage);
    if (forTests) installForTests();
    installPrograms();
    buildNative();
  } finally {
    release();
  }
}

/** Waits for other set-ups of this checkout. The kernel frees the lock when its holder dies, so it is never stale. */
async function takeTurn() {
  const holder = spawn("flock", [join(root, ".setup.lock"), "sh", "-c", "echo; exec cat"], {
    stdio: ["pipe", "pipe", "inherit"],
  });
  const held = once(holder.stdout, "data").then(() => "held");
  const lost = once(holder, "exit").catch((error) => error);
  const first = await Promise.race([held, lost, sleep(1000, "waiting", { ref: false })]);
  if (first === "waiting") say("waiting for another set-up of this checkout");
  if ((await Promise.race([held, lost])) !== "held") {
    throw new SetupError("cannot lock .setup.lock with `flock` (Debian package util-linux).");
  }
  return () => holder.stdin.end();
}

/** Installs the packages of a directory's lock file, unless they are installed already. */
function installModules(directory, options) {
  const stamp = join(directory, "node_modules/.slipway-setup");
  const wanted = createHash("sha256")
    .update(readFileSync(join(directory, "package-lock.json")))
    .digest("hex");
  if (existsSync(stamp) && readFileSync(stamp, "utf8") === wanted) return;
  say(`installing npm packages${directory === root ? "" : ` in ${relative(root, directory)}`}`);
  rmSync(stamp, { force: true });
  const npm = process.env.npm_execpath ? [process.execPath, process.env.npm_execpath] : ["npm"];
  run([...npm, "ci", ...options, "--loglevel=error"], "`npm ci` failed.", directory);
  writeFileSync(stamp, wanted);
}

/** Bundles a package into a few files, which load faster. Its entries keep sharing their common code. */
function joinFiles({ name, entries }) {
  const directory = join(root, "node_modules", name);
  const stamp = join(directory, ".slipway-joined");
  if (!existsSync(directory) || existsSync(stamp)) return;
  const made = join(directory, ".slipway-new");
  rmSync(made, { recursive: true, force: true });
  const esbuild = join(root, "node_modules/.bin/esbuild");
  const options = ["--bundle", "--splitting", "--format=esm", "--platform=node", "--outbase=.", `--outdir=${made}`];
  run([esbuild, ...entries, ...options, "--log-level=warning"], `could not bundle ${name}.`, directory);
  const chunks = readdirSync(made).filter((file) => file.startsWith("chunk-"));
  // One whole file at a time, imports first: a program may be loading them.
  for (const file of [...chunks, ...entries]) renameSync(join(made, file), join(directory, file));
  rmSync(made, { recursive: true });
  writeFileSync(stamp, "");
}

/** Third-party programs for tests. Each coding agent has its own directory, as on a user's machine. */
function installForTests() {
  const agents = existsSync(testAgents) ? readdirSync(testAgents).map((agent) => join(testAgents, agent)) : [];
  for (const directory of [...agents, ...[testRestate].filter(existsSync)]) {
    installModules(directory, ["--include=optional", "--ignore-scripts"]);
  }
}

function installPrograms() {
  const missing = programs.filter((program) => (forTests || program.for === "run") && !find(program.command));
  if (missing.length === 0) return;
  const packages = missing.flatMap((program) => program.packages);
  const list = missing.map(({ command, why }) => `  ${command}: ${why}`).join("\n");
  const prefix = find("apt-get") && rootPrefix();
  if (!prefix) {
    throw new SetupError(
      `these programs are missing:\n${list}\nOn Debian or Ubuntu: apt-get install ${packages.join(" ")}`,
    );
  }
  say(`installing ${packages.join(", ")}`);
  // Another apt may hold the lock, such as the set-up of another checkout.
  const lockTimeout = ["-o", "DPkg::Lock::Timeout=300"];
  const apt = [...prefix, "env", "DEBIAN_FRONTEND=noninteractive", "apt-get", "-q", ...lockTimeout];
  const install = [...apt, "install", "-y", "--no-install-recommends", ...packages];
  // The package lists may be missing or stale. Fetching them is slow, so only after a failure.
  if (exitCode(install) !== 0) {
    say("updating the package lists");
    run([...apt, "update"], "`apt-get update` failed.");
    run(install, `could not install ${packages.join(", ")}.`);
  }
  const still = missing.find((program) => !find(program.command));
  if (still) throw new SetupError(`${still.packages.join(", ")} is installed, but ${still.command} is not in PATH.`);
}

/** A prefix that runs a command as root; undefined if that needs a password. */
function rootPrefix() {
  if (process.getuid?.() === 0) return [];
  return spawnSync("sudo", ["-n", "true"]).status === 0 ? ["sudo", "-n"] : undefined;
}

function buildNative() {
  const build = join(root, "packages/sandbox/native/build.mjs");
  if (existsSync(build)) run([process.execPath, build], "could not compile the sandbox's C programs.");
}

function find(command) {
  const directories = [...(process.env.PATH ?? "").split(delimiter), "/usr/sbin", "/sbin"];
  return directories.some((directory) => {
    try {
      accessSync(join(directory, command), constants.X_OK);
      return true;
    } catch {
      return false;
    }
  });
}

function run(argv, failure, cwd = root) {
  if (exitCode(argv, cwd) !== 0) throw new SetupError(failure);
}

function exitCode([command, ...args], cwd = root) {
  return spawnSync(command, args, { cwd, stdio: "inherit" }).status;
}

function say(line) {
  console.log(`set-up: ${line}`);
}
