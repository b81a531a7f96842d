import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, readdirSync, readlinkSync } from "node:fs";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { expect, onTestFinished, test } from "vitest";
import { connectTo } from "./testing.ts";

const main = fileURLToPath(new URL("main.ts", import.meta.url));

test("the program tells how to reach it, and leaves nothing when it is interrupted", async () => {
  const program = spawn(process.execPath, [main], { stdio: ["ignore", "pipe", "inherit"] });
  onTestFinished(() => void program.kill("SIGKILL"));
  const said = new Map<string, string>();
  for await (const line of createInterface(program.stdout)) {
    const [, name, value] = /^export (\w+)=(\S+)/.exec(line) ?? [];
    if (name !== undefined && value !== undefined) said.set(name, value);
    if (line.startsWith("docs/modal-stand-in.md")) break;
  }
  const of = (name: string) => said.get(name) ?? "";
  const url = of("MODAL_SERVER_URL");
  const modal = connectTo({ url, tokenId: of("MODAL_TOKEN_ID"), tokenSecret: of("MODAL_TOKEN_SECRET") });
  const app = await modal.apps.fromName("main", { createIfMissing: true });
  const sandbox = await modal.sandboxes.create(app, modal.images.fromRegistry("debian"), { encryptedPorts: [8000] });
  const exec = await sandbox.exec(["readlink", "/proc/self/ns/pid"]);
  const namespace = (await exec.stdout.readText()).trim();
  expect(namespacesOfProcesses()).toContain(namespace);
  expect(existsSync(of("NODE_EXTRA_CA_CERTS"))).toBe(true);
  const { port } = (await sandbox.tunnels())[8000] ?? {};
  modal.close();

  program.kill("SIGINT");
  expect(await once(program, "exit")).toEqual([0, null]);
  expect(existsSync(of("NODE_EXTRA_CA_CERTS"))).toBe(false);
  expect(namespacesOfProcesses()).not.toContain(namespace);
  for (const gone of [url, `http://127.0.0.1:${port}`]) await expect(fetch(gone)).rejects.toThrow("fetch failed");
});

test("an option that it does not understand is told by its name", async () => {
  const program = spawn(process.execPath, [main, "--port", "many"], { stdio: ["ignore", "ignore", "pipe"] });
  let words = "";
  for await (const piece of program.stderr) words += piece;
  expect(words).toBe("--port: many is not a port.\n");
  expect(program.exitCode ?? (await once(program, "exit"))[0]).toBe(2);
});

function namespacesOfProcesses(): string[] {
  return readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .flatMap((pid) => {
      try {
        return [readlinkSync(`/proc/${pid}/ns/pid`)];
      } catch {
        // It has ended meanwhile, or is another user's.
        return [];
      }
    });
}
