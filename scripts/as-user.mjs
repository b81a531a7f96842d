// `node scripts/as-user.mjs <script> [args]` runs a Node script of this checkout as an ordinary user, from a copy that
// user can read, with a home and a temporary directory of its own. Needs root. Brings back what lands in .reports.
import { spawn, spawnSync } from "node:child_process";
import { chmodSync, cpSync, existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, statSync } from "node:fs";
import { constants, tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const uid = 61200;
const root = fileURLToPath(new URL("..", import.meta.url));

if (process.getuid() !== 0) {
  console.error("as-user: only root can change to another user.");
  process.exitCode = 1;
} else {
  // Short, since unix sockets below it have at most 107 characters for their path.
  const base = mkdtempSync(join(sameDevice(), "slw-"));
  try {
    process.exitCode = await run(prepare(base), process.argv.slice(2));
  } finally {
    rmSync(base, { recursive: true, force: true, maxRetries: 5 });
  }
}

/** Hard links do not cross file systems. */
function sameDevice() {
  const device = statSync(root).dev;
  return [tmpdir(), "/var/tmp"].find((path) => existsSync(path) && statSync(path).dev === device) ?? tmpdir();
}

function prepare(base) {
  const places = { repo: join(base, "repo"), home: join(base, "home"), tmp: join(base, "tmp") };
  chmodSync(base, 0o755);
  for (const path of Object.values(places)) mkdirSync(path, { mode: 0o755 });
  copy(places.repo);
  // Directories are never shared with the checkout, files may be: only directories change hands.
  must("find", [base, "-mindepth", "1", "-type", "d", "-exec", "chown", `${uid}:${uid}`, "{}", "+"]);
  return places;
}

function copy(target) {
  // Other processes write to the caches meanwhile, and a file that vanishes would end the copy.
  const caches = [".cache", ".vite", ".vite-temp"];
  const parts = [
    { from: entriesOf(root, [".git", ".reports", "node_modules"]), to: target },
    { from: entriesOf(join(root, "node_modules"), caches), to: join(target, "node_modules") },
  ];
  const sources = parts.flatMap(({ from }) => from);
  const unreadable = ["(", "!", "-perm", "-o=r", "-o", "-type", "d", "!", "-perm", "-o=x", ")", "-print", "-quit"];
  const found = spawnSync("find", [...sources, "!", "-type", "l", ...unreadable], { encoding: "utf8" });
  mkdirSync(join(target, "node_modules"), { mode: 0o755 });
  if (found.stdout === "" && parts.every(({ from, to }) => spawnSync("cp", ["-al", ...from, to]).status === 0)) return;
  // A link shares its mode with the checkout's file, so what others may not read is copied and opened up in the copy.
  rmSync(target, { recursive: true });
  mkdirSync(join(target, "node_modules"), { mode: 0o755, recursive: true });
  for (const { from, to } of parts) must("cp", ["-a", ...from, to]);
  must("chmod", ["-R", "a+rX", target]);
}

function entriesOf(directory, leftOut) {
  return readdirSync(directory)
    .filter((name) => !leftOut.includes(name))
    .map((name) => join(directory, name));
}

async function run({ repo, home, tmp }, args) {
  const { CI, NODE_EXTRA_CA_CERTS, SSL_CERT_FILE, SLIPWAY_LANE, SLIPWAY_SEED } = process.env;
  // The checkout may be in a directory that the user cannot enter: its own Node is taken from the copy.
  const node = process.execPath.startsWith(root) ? join(repo, process.execPath.slice(root.length)) : process.execPath;
  const path = `${dirname(node)}:/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin`;
  const given = { CI, NODE_EXTRA_CA_CERTS, SSL_CERT_FILE, SLIPWAY_LANE, SLIPWAY_SEED };
  const own = { PATH: path, HOME: home, TMPDIR: tmp, NODE_COMPILE_CACHE: join(tmp, "compiled") };
  const env = { ...own, LANG: "C.UTF-8", ...given };
  const identity = ["--reuid", `${uid}`, "--regid", `${uid}`, "--clear-groups", "--inh-caps=-all"];
  const child = spawn("setpriv", [...identity, node, ...args], { cwd: repo, env, stdio: "inherit" });
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"]) process.on(signal, () => child.kill(signal));
  const code = await new Promise((resolve, reject) => {
    child.on("error", reject);
    child.on("exit", (exit, signal) => resolve(exit ?? 128 + constants.signals[signal]));
  });
  const reports = join(repo, ".reports");
  if (existsSync(reports)) cpSync(reports, join(root, ".reports"), { recursive: true });
  return code;
}

function must(command, args) {
  const { status, stderr } = spawnSync(command, args, { encoding: "utf8" });
  if (status !== 0) throw new Error(`${command} failed: ${stderr}`);
}
