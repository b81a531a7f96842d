import { existsSync, statSync } from "node:fs";
import { connect } from "node:net";
import { afterAll, beforeAll, expect, onTestFinished, test, vi } from "vitest";
import type { HostChannel, OwnedSandbox } from "../../../provider.ts";
import { run } from "../../../run.ts";
import { createLocalProvider } from "../index.ts";
import { layoutOf } from "../layout.ts";
import { keepersOf, type LocalSetup, setUpLocal } from "../testing.ts";

let local: LocalSetup;
beforeAll(() => {
  local = setUpLocal();
});
afterAll(async () => await local[Symbol.asyncDispose]());

const small = { cpu: 1, memoryMb: 256, diskMb: 256 } as const;

async function killKeeper(): Promise<void> {
  for (const pid of keepersOf(local.stateDir)) process.kill(pid, "SIGKILL");
  await vi.waitFor(() => expect(keepersOf(local.stateDir)).toEqual([]));
}

async function greet(channel: HostChannel): Promise<void> {
  for await (const connection of channel.connections()) connection.end("hello");
}

async function dial(sandbox: OwnedSandbox, { inside }: HostChannel): Promise<string> {
  const script =
    "import socket, sys; s = socket.socket(socket.AF_UNIX); s.connect(sys.argv[1]); print(s.recv(9).decode())";
  return (await run(sandbox, ["python3", "-c", script, inside])).stdout;
}

test("the host channel goes on when the keeper is killed, and over the next one's stop and start", async () => {
  await using sandbox = await local.provider.create(small);
  await using channel = await sandbox.openChannel();
  void greet(channel);
  await killKeeper();
  expect(await dial(sandbox, channel)).toBe("hello\n");
  await sandbox.stop();
  await sandbox.start();
  expect(await dial(sandbox, channel)).toBe("hello\n");
});

test("the host channel ends with a sandbox that a new keeper destroyed for another caller", async () => {
  const sandbox = await local.provider.create(small);
  await using channel = await sandbox.openChannel();
  const taking = Array.fromAsync(channel.connections());
  await killKeeper();
  await using other = createLocalProvider({ stateDir: local.stateDir, environment: process.env });
  await (await other.get(sandbox.id)).destroy();
  expect(await taking).toEqual([]);
});

test("whatever the umask, each socket is its owner's alone, but for those that the sandbox dials in a closed directory", async () => {
  const umask = process.umask(0);
  onTestFinished(() => void process.umask(umask));
  await using fresh = setUpLocal();
  await using sandbox = await fresh.provider.create(small);
  await using _ = await sandbox.openChannel();
  const { keeperSocket, launchSocket, box } = layoutOf(fresh.stateDir);
  const { root, agentSocket, egressSocket, channelSocket } = box(sandbox.id);
  const modeOf = (path: string) => statSync(path).mode & 0o777;
  expect([keeperSocket, launchSocket, agentSocket].map(modeOf)).toEqual([0o600, 0o600, 0o600]);
  expect([egressSocket, channelSocket].map((path) => modeOf(path) & 0o111)).toEqual([0, 0]);
  expect(modeOf(root)).toBe(0o700);
});

test("a closed provider has closed its host channels, socket and all", async () => {
  await using sandbox = await local.provider.create(small);
  const { channelSocket } = layoutOf(local.stateDir).box(sandbox.id);
  {
    await using other = createLocalProvider({ stateDir: local.stateDir, environment: process.env });
    await (await other.get(sandbox.id)).openChannel();
    expect(existsSync(channelSocket)).toBe(true);
  }
  expect(existsSync(channelSocket)).toBe(false);
  await using channel = await sandbox.openChannel();
  void greet(channel);
  expect(await dial(sandbox, channel)).toBe("hello\n");
});

test.each(["agent", "root"] as const)(
  "%s inside can neither remove the host channel's socket nor put one in its place",
  async (user) => {
    await using sandbox = await local.provider.create({ ...small, user });
    await using channel = await sandbox.openChannel();
    void greet(channel);
    const tampered = await run(
      sandbox,
      `rm -f ${channel.inside}; mv ${channel.inside} /tmp/x; touch /run/slipway/x; chmod 0 ${channel.inside}; echo done`,
    );
    expect(tampered.stdout).toBe("done\n");
    expect(await dial(sandbox, channel)).toBe("hello\n");
  },
);

test("connections past the limit are cut, and those before it stay", async () => {
  await using sandbox = await local.provider.create(small);
  await using channel = await sandbox.openChannel();
  const { channelSocket } = layoutOf(local.stateDir).box(sandbox.id);
  const dialed = Array.from({ length: 300 }, () => connect(channelSocket).on("error", () => undefined));
  await vi.waitFor(() => expect(dialed.filter(({ closed }) => closed).length).toBe(300 - 256));
  let taken = 0;
  for await (const connection of channel.connections()) {
    connection.destroy();
    if (++taken === 256) break;
  }
  for (const socket of dialed) socket.destroy();
});
