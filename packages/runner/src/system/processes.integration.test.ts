import { spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { endOrphans, markProcesses } from "./processes.ts";

/** Starts a shell, and answers when it has said as many lines as it has processes: their ids. */
async function start(script: string, environment: Readonly<Record<string, string>>, lines: number) {
  const child = spawn("bash", ["-c", script], {
    detached: true,
    stdio: ["ignore", "pipe", "inherit"],
    env: { ...process.env, ...environment },
  });
  let text = "";
  for await (const chunk of child.stdout) {
    text += chunk;
    if (text.trim().split("\n").length >= lines) break;
  }
  return { child, pids: text.trim().split("\n").map(Number) };
}

/** One that has ended counts as gone, even while nobody has asked how. */
function isRunning(pid: number): boolean {
  try {
    return !/\) [ZX] /.test(readFileSync(`/proc/${pid}/stat`, "latin1"));
  } catch {
    return false;
  }
}

test("a double fork into its own session does not escape", async () => {
  const mark = markProcesses();
  const { child, pids } = await start(
    `( setsid bash -c 'echo $$; exec sleep 1000' & ) ; ( ( sleep 1000 & echo $! ) ) ; exit 0`,
    mark.environment,
    2,
  );
  if (child.exitCode === null) await once(child, "exit");
  expect(pids.map(isRunning)).toEqual([true, true]);
  expect(await mark.end({ leader: child.pid })).toBe(true);
  expect(pids.map(isRunning)).toEqual([false, false]);
});

test("a process that drops its environment is recognised by its session or its parent", async () => {
  const mark = markProcesses();
  const { child, pids } = await start(
    `env -i sleep 1000 & echo $!; bash -c 'env -i setsid bash -c "echo \\$\\$; exec sleep 1000"' & wait`,
    mark.environment,
    2,
  );
  expect(await mark.end({ leader: child.pid })).toBe(true);
  expect(pids.map(isRunning)).toEqual([false, false]);
});

test("processes that ignore TERM or are stopped are killed after the grace", async () => {
  const mark = markProcesses();
  const { child, pids } = await start(
    `trap '' TERM; sleep 1000 & echo $!; kill -STOP $!; echo $$; while :; do sleep 0.1; done`,
    mark.environment,
    2,
  );
  expect(await mark.end({ leader: child.pid, graceMs: 50 })).toBe(true);
  expect(pids.map(isRunning)).toEqual([false, false]);
});

test("processes with another mark are not touched", async () => {
  const [mine, other] = [markProcesses(), markProcesses()];
  const { pids } = await start("echo $$; exec sleep 1000", other.environment, 1);
  expect(await mine.end()).toBe(true);
  expect(pids.map(isRunning)).toEqual([true]);
  await other.end();
  expect(pids.map(isRunning)).toEqual([false]);
});

test("children of a killed process are orphans, and those of a live one are not", async () => {
  const live = await start("echo $$; exec sleep 1000", markProcesses().environment, 1);
  const fixture = fileURLToPath(new URL("fixtures/starter.ts", import.meta.url));
  const starter = spawn(process.execPath, [fixture], { stdio: ["ignore", "pipe", "inherit"] });
  const [line] = await once(starter.stdout, "data");
  const left = Number(line);
  starter.kill("SIGKILL");
  await once(starter, "exit");
  expect(await endOrphans()).toBe(true);
  expect(isRunning(left)).toBe(false);
  expect(live.pids.map(isRunning)).toEqual([true]);
  live.child.kill("SIGKILL");
});
