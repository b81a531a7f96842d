// Compiles the native programs: native/<name>/*.c -> native/build/slipway-<name>. Does nothing when the sources are unchanged.
import { spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";

const native = dirname(fileURLToPath(import.meta.url));
const programs = ["agent", "launch"];
const flags = [
  "-std=gnu17",
  "-O2",
  "-Wall",
  "-Wextra",
  "-Werror",
  "-fstack-protector-strong",
  "-D_FORTIFY_SOURCE=2",
  "-static",
  "-s",
];

/** Compiles what has changed and answers the programs' paths. Throws an Error that says what is missing. */
export function buildNative() {
  const output = join(native, "build");
  mkdirSync(output, { recursive: true });
  const built = {};
  for (const name of programs) {
    const path = buildProgram(name, output);
    if (path !== null) built[name] = path;
  }
  return built;
}

function buildProgram(name, output) {
  const folder = join(native, name);
  const files = existsSync(folder) ? readdirSync(folder).sort() : [];
  const sources = files.filter((file) => file.endsWith(".c")).map((file) => join(folder, file));
  if (sources.length === 0) return null;
  const target = join(output, `slipway-${name}`);
  const stamp = `${target}.sha256`;
  const hash = createHash("sha256").update(JSON.stringify([flags, process.arch]));
  for (const file of files)
    if (/\.[ch]$/.test(file)) hash.update(`\0${file}\0`).update(readFileSync(join(folder, file)));
  const digest = hash.digest("hex");
  if (existsSync(target) && existsSync(stamp) && readFileSync(stamp, "utf8") === digest) return target;
  compile(sources, target);
  writeFileSync(stamp, digest);
  return target;
}

function compile(sources, target) {
  // Under a name of its own first: two builds at once must not run each other's half-written program.
  const fresh = `${target}.${process.pid}`;
  const result = spawnSync("cc", [...flags, "-o", fresh, ...sources], { encoding: "utf8" });
  if (result.error) {
    throw new Error("No C compiler: install cc (Debian and Ubuntu: apt-get install gcc libc6-dev).", {
      cause: result.error,
    });
  }
  if (result.status !== 0) throw new Error(`cc could not build ${target}:\n${result.stderr}`);
  renameSync(fresh, target);
}

if (process.argv[1] && import.meta.url === pathToFileURL(process.argv[1]).href) {
  try {
    buildNative();
  } catch (error) {
    console.error(error.message);
    process.exitCode = 1;
  }
}
