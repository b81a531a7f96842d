// Writes each package-lock.json anew from the manifests, with one npm version, where there is neither node_modules nor a lock:
// beside either npm leaves out other platforms' optional packages, and `npm ci` then refuses the lock. A registry may not
// carry all of them: those are locked by what their names say, so that `npm ci` never asks for them.
// `node scripts/lock.mjs [directory]`: of one directory only.
import { spawnSync } from "node:child_process";
import { cpSync, globSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const root = fileURLToPath(new URL("..", import.meta.url));
const directories = [
  ".",
  "examples/demo-app/scaffold",
  ...globSync("scripts/{test-agents/*,test-restate}", { cwd: root }),
];
const [only] = process.argv.slice(2);
for (const directory of only === undefined ? directories : [only]) {
  if (!writeLock(join(root, directory))) process.exitCode = 1;
}

function writeLock(directory) {
  const place = mkdtempSync(join(tmpdir(), "lock-"));
  cpSync(join(root, ".npmrc"), join(place, ".npmrc"));
  for (const path of globSync(["package.json", "packages/*/package.json"], { cwd: directory })) {
    cpSync(join(directory, path), join(place, path));
  }
  const install = ["-y", "npm@11.6.2", "install", "--package-lock-only", "--loglevel=error"];
  const { status } = spawnSync("npx", install, { cwd: place, stdio: "inherit" });
  if (status === 0) {
    const lock = JSON.parse(readFileSync(join(place, "package-lock.json"), "utf8"));
    writeFileSync(join(directory, "package-lock.json"), `${JSON.stringify(complete(lock), null, 2)}\n`);
  }
  rmSync(place, { recursive: true });
  return status === 0;
}

/**
 * npm writes a package that it could not find without a version, below the one that asks for it. Such a lock holds only
 * until the registry does have the package: `npm ci` then fails with "Invalid Version".
 */
function complete(lock) {
  const packages = Object.entries(lock.packages).map(([path, entry]) => {
    const [, parent, name] = path.match(/^(.+)\/node_modules\/((?:@[^/]+\/)?[^/]+)$/) ?? [];
    if (entry.version || entry.link || !entry.optional || name === undefined) return [path, withLibrary(path, entry)];
    const version = lock.packages[parent].optionalDependencies[name];
    return [`node_modules/${name}`, withLibrary(name, { version, ...entry, ...platformOf(name) })];
  });
  return { ...lock, packages: Object.fromEntries(packages.toSorted(([one], [other]) => (one < other ? -1 : 1))) };
}

/** This npm leaves out for which C library a package is, and `npm ci` then installs those for each. */
function withLibrary(name, entry) {
  return entry.optional && /-musl(eabihf)?$/.test(name) ? { ...entry, libc: ["musl"] } : entry;
}

/** `@scope/binding-linux-arm-gnueabihf` is for Linux on arm. */
function platformOf(name) {
  const words = name.split(/[/-]/);
  const cpu = words.filter((word) => /^(arm|arm64|ia32|x64|ppc64|riscv64|s390x|wasm32)$/.test(word));
  const os = words.filter((word) => /^(android|darwin|freebsd|linux|openharmony|win32)$/.test(word));
  if (cpu.length === 0) throw new Error(`cannot tell the platform of ${name} from its name`);
  return { cpu, ...(os.length > 0 && { os }) };
}
