import { spawn } from "node:child_process";
import { once } from "node:events";
import { chmod, copyFile, mkdir, mkdtemp, readFile, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { text } from "node:stream/consumers";
import { fileURLToPath } from "node:url";
import { afterEach, beforeEach, expect, it } from "vitest";

const realPrograms = ["sh", "env", "flock", "cat", "mkdir", "sleep", "touch", "chmod", "true", "cp"];
const needed = ["bwrap", "git", "debootstrap", "chromium", "cc", "setpriv"];

let checkout: string;

/** A checkout with a PATH of its own, where each stand-in program writes its name and arguments to `calls`. */
beforeEach(async () => {
  checkout = await mkdtemp(join(tmpdir(), "setup-"));
  await mkdir(join(checkout, "scripts"));
  await mkdir(join(checkout, "bin"));
  await copyFile(fileURLToPath(new URL("setup.mjs", import.meta.url)), join(checkout, "scripts/setup.mjs"));
  await writeFile(join(checkout, "package-lock.json"), "{}");
  for (const name of realPrograms) await symlink(`/usr/bin/${name}`, join(checkout, "bin", name));
  for (const name of needed) await program(name, "");
  await program("npm", "sleep 0.2; mkdir -p node_modules");
});

afterEach(() => rm(checkout, { recursive: true, force: true }));

it("packages are installed once, and again when the lock changes", async () => {
  await setUp();
  await setUp();
  expect(await calls()).toEqual(["npm ci --include=dev --include=optional --loglevel=error"]);
  await writeFile(join(checkout, "package-lock.json"), "{ }");
  await setUp();
  expect(await calls()).toHaveLength(2);
});

it("a failed install is tried again the next time", async () => {
  await program("npm", "mkdir -p node_modules; exit 1");
  expect(await setUp()).toMatchObject({ code: 1, stderr: expect.stringContaining("`npm ci` failed") });
  await program("npm", "mkdir -p node_modules");
  expect(await setUp()).toMatchObject({ code: 0 });
});

it("two set-ups at the same time install once", async () => {
  const both = await Promise.all([setUp(), setUp()]);
  expect(both.map(({ code }) => code)).toEqual([0, 0]);
  expect(await calls()).toHaveLength(1);
});

it("a missing program is installed, after an update when the first try fails", async () => {
  await rm(join(checkout, "bin/bwrap"));
  await program("sudo", `shift; exec "$@"`);
  await program(
    "apt-get",
    `case "$*" in
      *update*) touch "$0.updated" ;;
      *) [ -e "$0.updated" ] || exit 100; touch "\${0%/*}/bwrap"; chmod +x "\${0%/*}/bwrap" ;;
    esac`,
  );
  expect(await setUp()).toMatchObject({ code: 0 });
  const apt = (await calls()).filter((line) => line.startsWith("apt-get"));
  const patient = "apt-get -q -o DPkg::Lock::Timeout=300";
  const install = `${patient} install -y --no-install-recommends bubblewrap`;
  expect(apt).toEqual([install, `${patient} update`, install]);
});

it("without a way to install them, missing programs are named with their packages", async () => {
  await rm(join(checkout, "bin/bwrap"));
  await rm(join(checkout, "bin/cc"));
  const { code, stderr } = await setUp();
  expect(code).toBe(1);
  expect(stderr).toContain("bwrap: isolates the sandboxes");
  expect(stderr).toContain("apt-get install bubblewrap gcc libc6-dev");
});

it("programs that only tests need are asked for only by tests", async () => {
  await rm(join(checkout, "bin/setpriv"));
  expect(await setUp()).toMatchObject({ code: 0 });
  expect(await setUp("--tests")).toMatchObject({ code: 1, stderr: expect.stringContaining("setpriv") });
});

it("other people's agents are installed for tests only, each in its directory and without its scripts", async () => {
  const agent = join(checkout, "scripts/test-agents/example");
  await mkdir(agent, { recursive: true });
  await writeFile(join(agent, "package-lock.json"), "{}");
  await setUp();
  expect(await calls()).toHaveLength(1);
  await program("npm", "pwd >> $0.places; mkdir -p node_modules");
  await setUp("--tests");
  await setUp("--tests");
  expect((await calls()).slice(1)).toEqual(["npm ci --include=optional --ignore-scripts --loglevel=error"]);
  expect(await readFile(join(checkout, "bin/npm.places"), "utf8")).toBe(`${agent}\n`);
});

it("the C programs are built, and a failure to build them is a failure", async () => {
  const build = join(checkout, "packages/sandbox/native/build.mjs");
  await mkdir(dirname(build), { recursive: true });
  await writeFile(build, `console.log("compiled")`);
  expect(await setUp()).toMatchObject({ code: 0, stdout: expect.stringContaining("compiled") });
  await writeFile(build, "process.exit(3)");
  expect(await setUp()).toMatchObject({ code: 1, stderr: expect.stringContaining("could not compile") });
});

/** A shell remembers where it has found `node`. */
it.each(["test", "test:long", "bench", "demo"])(
  "npm run %s goes on with the Node that set-up has installed",
  async (name) => {
    const manifest = JSON.parse(await readFile(new URL("../package.json", import.meta.url), "utf8"));
    const installed = join(checkout, "node_modules/.bin");
    await program("installed", "");
    await program(
      "node",
      `mkdir -p ${installed}; [ -e ${installed}/node ] || cp ${checkout}/bin/installed ${installed}/node`,
    );
    const child = spawn("sh", ["-c", manifest.scripts[name]], { env: { PATH: `${installed}:${checkout}/bin` } });
    expect(await once(child, "exit")).toEqual([0, null]);
    expect(await calls()).toEqual([
      expect.stringMatching(/^node scripts\/setup.mjs/),
      expect.stringMatching(/^installed /),
    ]);
  },
);

async function setUp(...args: string[]) {
  const child = spawn(process.execPath, [join(checkout, "scripts/setup.mjs"), ...args], {
    env: { PATH: join(checkout, "bin") },
    stdio: ["ignore", "pipe", "pipe"],
  });
  const [stdout, stderr, [code]] = await Promise.all([text(child.stdout), text(child.stderr), once(child, "exit")]);
  return { code, stdout, stderr };
}

async function program(name: string, script: string) {
  const path = join(checkout, "bin", name);
  await rm(path, { force: true });
  await writeFile(path, `#!/bin/sh\necho "${name} $*" >> ${checkout}/calls\n${script}\n`);
  await chmod(path, 0o755);
}

async function calls(): Promise<string[]> {
  return (await readFile(join(checkout, "calls"), "utf8")).trim().split("\n");
}
