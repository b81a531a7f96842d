import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { copyFile, mkdir, mkdtemp, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, it } from "vitest";

const root = fileURLToPath(new URL("..", import.meta.url));
const main = `
  const [what, value] = process.argv.slice(2) as [string, string];
  if (what === "exit") process.exitCode = Number(value);
  if (what === "die") process.kill(process.pid, value);
  if (what === "wait") {
    process.on("SIGTERM", () => process.exit(7));
    setInterval(() => {}, 1000);
  }
  console.log(what, value, process.ppid === Number(process.env["STARTER"]) ? "same process" : "second process");
`;

let checkout: string;

beforeAll(async () => {
  checkout = await mkdtemp(join(tmpdir(), "launcher-"));
  for (const path of ["bin", "packages/cli/src", "node_modules/@slipway/cli"]) {
    await mkdir(join(checkout, path), { recursive: true });
  }
  await writeFile(join(checkout, "package.json"), `{ "type": "module" }`);
  await writeFile(join(checkout, "packages/cli/src/main.ts"), main);
  await copyFile(join(root, "bin/slipway"), join(checkout, "bin/slipway"));
  const node = `node_modules/node-${process.platform}-${process.arch}`;
  await symlink(join(root, node), join(checkout, node));
});

afterAll(() => rm(checkout, { recursive: true, force: true }));

it("on Node 24 the command runs in the launcher's own process", async () => {
  expect(await outcome(launch(["exit", "3"]))).toEqual({ code: 3, signal: null, stdout: "exit 3 same process\n" });
});

describe("on an older Node", () => {
  const older = `Object.defineProperty(process, "versions", { value: { ...process.versions, node: "20.0.0" } })`;
  const nodeArgs = ["--import", `data:text/javascript,${encodeURIComponent(older)}`];

  it("arguments, output and exit code pass through", async () => {
    const run = launch(["exit", "3"], nodeArgs);
    expect(await outcome(run)).toEqual({ code: 3, signal: null, stdout: "exit 3 second process\n" });
  });

  it("a command that a signal ends, ends the launcher by that signal", async () => {
    expect(await outcome(launch(["die", "SIGKILL"], nodeArgs))).toMatchObject({ signal: "SIGKILL" });
  });

  it("a signal reaches the command", async () => {
    const run = launch(["wait", "for it"], nodeArgs);
    const ended = outcome(run);
    if (run.stdout) await once(run.stdout, "data");
    run.kill("SIGTERM");
    expect(await ended).toMatchObject({ code: 7 });
  });
});

it("before set-up it says what to do and ends with 125", async () => {
  await rm(join(checkout, "node_modules/@slipway"), { recursive: true });
  const run = launch([]);
  const [message, { code }] = await Promise.all([run.stderr ? text(run.stderr) : "", outcome(run)]);
  expect(message).toContain("npm run setup");
  expect(code).toBe(125);
});

function launch(args: string[], nodeArgs: string[] = []) {
  return spawn(process.execPath, [...nodeArgs, join(checkout, "bin/slipway"), ...args], {
    env: { STARTER: String(process.pid) },
    stdio: ["ignore", "pipe", "pipe"],
  });
}

async function outcome(child: ChildProcess) {
  const [stdout, [code, signal]] = await Promise.all([child.stdout ? text(child.stdout) : "", once(child, "exit")]);
  return { code, signal, stdout };
}
