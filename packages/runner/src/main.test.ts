import { spawn } from "node:child_process";
import { once } from "node:events";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import type { NumberedEvent } from "@slipway/contract";
import type { ScriptedProgram } from "@slipway/gateway/scripted";
import { expect, test } from "vitest";
import { buildRunner } from "../build.mjs";
import { openTestHost } from "./testing/host.ts";

const steps = 12;
const counting: ScriptedProgram = ({ step }) =>
  step < steps ? { actions: [{ run: `echo ${step} >> log` }] } : { text: "Counted." };

test("the bundled runner takes a run to its end and exits with 0", async () => {
  const { run, startRunner, workdir } = await openTestHost(counting);
  const runner = startRunner();
  const [code] = await once(runner, "exit");
  expect(code).toBe(0);
  expect(await run.ended).toEqual({ reason: "completed", message: "Counted." });
  expect(await readFile(join(workdir, "log"), "utf8")).toBe(`${numbers(steps).join("\n")}\n`);
});

test("a runner that is killed at any moment goes on, and does nothing again", async () => {
  const { run, startRunner, workdir } = await openTestHost(counting);
  const finished: NumberedEvent[] = [];
  let runner = startRunner();
  let killed = 0;
  for await (const event of run.events()) {
    finished.push(event);
    const isStep = event.event.type === "agent" && event.event.event.type === "tool";
    if (!isStep || killed >= 4 || Math.random() < 0.5) continue;
    const exit = once(runner, "exit");
    runner.kill("SIGKILL");
    await exit;
    killed++;
    runner = startRunner();
  }
  expect(await run.ended).toEqual({ reason: "completed", message: "Counted." });
  const lines = (await readFile(join(workdir, "log"), "utf8")).trim().split("\n").map(Number);
  // A step that was under way when the runner died may have had its effect or not; it never has it twice.
  expect(lines).toEqual([...new Set(lines)].sort((a, b) => a - b));
  const resumed = finished.filter(({ event }) => event.type === "resumed");
  expect(resumed.length).toBe(killed);
  const done = finished.flatMap(({ event }) =>
    event.type === "agent" && event.event.type === "tool" && event.event.phase === "end" ? [event.event.id] : [],
  );
  expect(new Set(done).size).toBe(done.length);
});

test("SIGTERM cancels the run", async () => {
  const { run, startRunner } = await openTestHost(() => ({ actions: [{ run: "sleep 1000" }] }));
  const runner = startRunner();
  for await (const { event } of run.events()) {
    if (event.type === "agent" && event.event.type === "tool") runner.kill("SIGTERM");
  }
  expect(await run.ended).toMatchObject({ reason: "cancelled" });
  if (runner.exitCode === null) await once(runner, "exit");
  expect(runner.exitCode).toBe(0);
});

test("a runner without its settings says which", async () => {
  const file = join(await buildRunner(), "runner.mjs");
  const runner = spawn(process.execPath, [file], { stdio: ["ignore", "ignore", "pipe"], env: {} });
  const words = (await runner.stderr.toArray()).join("");
  expect(words).toContain("SLIPWAY_RUN_TOKEN");
  expect(runner.exitCode ?? (await once(runner, "exit"))[0]).toBe(1);
});

function numbers(count: number): number[] {
  return Array.from({ length: count }, (_, index) => index);
}
