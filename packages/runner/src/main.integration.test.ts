import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { endAs, type RunnerEvent } from "@slipway/contract";
import type { OpenRun } from "@slipway/gateway";
import type { ScriptedProgram } from "@slipway/gateway/scripted";
import { expect, test } from "vitest";
import { buildRunner } from "../build.mjs";
import { openTestHost } from "./testing/host.ts";

const steps = 8;
const counting: ScriptedProgram = ({ step }) =>
  step < steps ? { actions: [{ run: `echo ${step} >> log` }] } : { text: "Counted." };

test("the bundled runner completes a run and exits with 0", async () => {
  const { run, startRunner, workdir } = await openTestHost(counting);
  const runner = startRunner();
  const [code] = await once(runner, "exit");
  expect(code).toBe(0);
  expect(await run.ended).toEqual(endAs("completed", "Counted."));
  expect(await linesOf(workdir)).toEqual(Array.from({ length: steps }, (_, step) => String(step)));
});

test("a runner that is killed at any moment continues and repeats nothing", async () => {
  const killed = Promise.withResolvers<void>();
  const { run, startRunner, workdir } = await openTestHost(async (request) => {
    // Else the run could be over before the first of its events is seen here.
    if (request.step === steps) await killed.promise;
    return counting(request);
  });
  const { events, kills } = await killAtRandom(run, startRunner, 4, killed.resolve);
  expect(await run.ended).toEqual(endAs("completed", "Counted."));
  expect(await linesOf(workdir)).toEqual(unique(await linesOf(workdir)));
  // A runner that is killed before it has said a word says nothing of it.
  const resumed = events.filter(({ type }) => type === "resumed").length;
  expect(resumed).toBeGreaterThan(0);
  expect(resumed).toBeLessThanOrEqual(kills);
  const done = toolEvents(events).flatMap(({ phase, id }) => (phase === "end" ? [id] : []));
  expect(done).toEqual(unique(done));
});

test("a team whose runner is killed continues and repeats no task", async () => {
  const tasks = ["ant", "bee", "cow", "dog"];
  const { run, startRunner, workdir } = await openTestHost(
    ({ step, lastPrompt, results }) => {
      const title = /^Your task: (\w+)/.exec(lastPrompt)?.[1];
      if (title !== undefined)
        return step < 3 ? { actions: [{ run: `echo ${title}-${step} >> log` }] } : { text: title };
      if (lastPrompt.startsWith("The workers are done")) return { text: lastPrompt };
      const last = results[0]?.text ?? "[no tasks]";
      if (last.startsWith("[interrupted")) return { actions: [{ tool: "list_tasks", input: {} }] };
      if (last !== "[no tasks]") return { text: "Handed out." };
      return {
        actions: [{ tool: "add_tasks", input: { tasks: tasks.map((name) => ({ title: name, details: "" })) } }],
      };
    },
    { workers: 2 },
  );
  const { events } = await killAtRandom(run, startRunner, 3);
  const { reason, message } = await run.ended;
  expect(reason).toBe("completed");
  for (const name of tasks) expect(message).toContain(`${name}: completed`);
  expect(await linesOf(workdir)).toEqual(unique(await linesOf(workdir)));
  const ids = events.flatMap((event) => (event.type === "task" ? [event.task.id] : []));
  expect(new Set(ids)).toEqual(new Set([1, 2, 3, 4]));
});

test("SIGTERM cancels the run", async () => {
  const { run, startRunner } = await openTestHost(() => ({ actions: [{ run: "sleep 1000" }] }));
  const runner = startRunner();
  for await (const { event } of run.events()) {
    // Once: when it is about to exit it does not listen any more.
    if (toolEvents([event]).some(({ phase }) => phase === "start")) runner.kill("SIGTERM");
  }
  expect(await run.ended).toMatchObject({ reason: "cancelled" });
  await exited(runner);
  expect(runner.exitCode).toBe(0);
});

test("a runner without settings names the missing ones", async () => {
  const file = join(await buildRunner(), "runner.mjs");
  const runner = spawn(process.execPath, [file], { stdio: ["ignore", "ignore", "pipe"], env: {} });
  const words = (await runner.stderr.toArray()).join("");
  expect(words).toContain("SLIPWAY_RUN_TOKEN");
  expect(runner.exitCode ?? (await once(runner, "exit"))[0]).toBe(1);
});

/** Kills the runner at some of its steps and starts it again, until the run has ended. */
async function killAtRandom(run: OpenRun, startRunner: () => ChildProcess, maxKills: number, onKilled = () => {}) {
  const events: RunnerEvent[] = [];
  let kills = 0;
  let runner = startRunner();
  for await (const { event } of run.events()) {
    events.push(event);
    const isDue = kills === 0 || (kills < maxKills && Math.random() < 0.3);
    if (toolEvents([event]).length === 0 || !isDue) continue;
    runner.kill("SIGKILL");
    // After the last of its steps it may have come to its end already.
    await exited(runner);
    kills++;
    onKilled();
    runner = startRunner();
  }
  return { events, kills };
}

async function exited(runner: ChildProcess): Promise<void> {
  if (runner.exitCode === null && runner.signalCode === null) await once(runner, "exit");
}

function toolEvents(events: readonly RunnerEvent[]) {
  return events.flatMap((event) => (event.type === "agent" && event.event.type === "tool" ? [event.event] : []));
}

/** A step that was under way when the runner died may have had its effect or not; it never has it twice. */
async function linesOf(workdir: string): Promise<string[]> {
  return (await readFile(join(workdir, "log"), "utf8")).trim().split("\n");
}

function unique(lines: readonly string[]): string[] {
  return [...new Set(lines)];
}
