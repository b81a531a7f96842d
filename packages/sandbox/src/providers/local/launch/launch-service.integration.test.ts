import { once } from "node:events";
import { readdirSync, readFileSync, statSync } from "node:fs";
import { connect } from "node:net";
import { text } from "node:stream/consumers";
import { afterAll, beforeAll, expect, test, vi } from "vitest";
import { launchArguments } from "./launch.ts";
import { createTestHost, type TestHost } from "./launch-fixture.ts";
import { startLaunchService } from "./launch-service.ts";

let host: TestHost;
beforeAll(async () => {
  host = await createTestHost();
});
afterAll(() => host[Symbol.asyncDispose]());

/** The service, and launches that are not bubblewrap yet. */
function processesOf(socketPath: string): number[] {
  return readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .map(Number)
    .filter((pid) => commandLine(pid).endsWith(`\0serve\0${socketPath}\0`));
}

function commandLine(pid: number): string {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, "utf8");
  } catch {
    return "";
  }
}

const open = (name: string) => {
  const socketPath = `${host.layout.root}/${name}.sock`;
  return { socketPath, starting: startLaunchService({ program: host.launcher, socketPath }) };
};
const unknown = ["nothing"];
const complaint = "slipway-launch: expected 'run' or 'layer'\n";

test("each of many launches at once is told apart", async () => {
  const said = await Promise.all(
    Array.from({ length: 50 }, async (_, i) => {
      const { connection } = await host.service.run(["layer", "--uid", "1", "--gid", "1", `command-${i}`, "--uid"]);
      return await text(connection);
    }),
  );
  expect(new Set(said)).toEqual(new Set(["slipway-launch: layer knows copy, flatten, measure and remove\n"]));
});

test("a sandbox has the descriptors that it has without the service", async () => {
  const { connection } = await host.service.run(launchArguments(host.spec("ls -l /proc/$$/fd; true")));
  const links = [...(await text(connection)).matchAll(/(\d+) -> (.*)$/gm)].map(
    ([, fd, to]) => [Number(fd), to] as const,
  );
  const known = new Map(links.filter(([, to]) => to !== "/run/slipway-agent"));
  expect([...known.keys()].sort()).toEqual([0, 1, 2, 3, 4, 5]);
  expect(known.get(0)).toBe("/dev/null");
  // Standard error and the status are the one connection.
  expect(known.get(2)).toBe(known.get(5));
});

test("a killed launch ends its connection", async () => {
  const { connection, kill } = await host.service.run(["run", "--wait", ...whoIs(host)]);
  kill();
  expect(await text(connection)).not.toContain("slipway-launch");
  expect(connection.destroyed).toBe(true);
  kill();
});

test("the end of what is written ends a launch that waits", async () => {
  const { connection } = await host.service.run(["run", "--wait", ...whoIs(host)]);
  connection.end("--layers\0/\0");
  expect(await text(connection)).toMatch(/run needs/);
});

test("a service that was killed fails what waits for it and is started again", async () => {
  const { socketPath, starting } = open("killed");
  await using service = await starting;
  expect(await text((await service.run(unknown)).connection)).toBe(complaint);
  const [pid = 0] = processesOf(socketPath);
  process.kill(pid, "SIGSTOP");
  const waiting = service.run(unknown);
  process.kill(pid, "SIGKILL");
  await expect(waiting).rejects.toMatchObject({ code: "provider_unavailable" });
  expect(await text((await service.run(unknown)).connection)).toBe(complaint);
});

test("a program that is not there is said to be missing", async () => {
  const socketPath = `${host.layout.root}/missing.sock`;
  await using service = await startLaunchService({ program: "/missing", socketPath });
  await expect(service.run(unknown)).rejects.toMatchObject({ code: "component_missing" });
});

test("the end of the service leaves no process and no socket", async () => {
  const { socketPath, starting } = open("ended");
  {
    await using service = await starting;
    (await service.run(unknown)).connection.destroy();
    expect(statSync(socketPath).mode & 0o777).toBe(0o600);
  }
  await vi.waitFor(() => expect(processesOf(socketPath)).toEqual([]));
  expect(() => statSync(socketPath)).toThrow("ENOENT");
});

test("a stranger is turned away", async () => {
  const socket = connect(host.layout.launchSocket);
  socket.write("0123456789abcdef 1\n");
  await once(socket.resume(), "close");
});

test("an argument cannot become two, and there are not too many", async () => {
  await expect(host.service.run(["run", "a\0--cgroup"])).rejects.toThrow("NUL");
  await expect(host.service.run(["x".repeat(3 << 20)])).rejects.toThrow("exceed the limit");
});

function whoIs({ identity }: TestHost): string[] {
  return identity === null ? [] : ["--uid", String(identity.uid), "--gid", String(identity.gid)];
}
