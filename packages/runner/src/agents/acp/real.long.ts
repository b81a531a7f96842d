import { execFile } from "node:child_process";
import { access, mkdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import type { AgentEvent } from "@slipway/contract";
import type { Action, Fault, ScriptedProgram } from "@slipway/gateway/scripted";
import { describe, expect, it } from "vitest";
import { supervise } from "../../supervise/supervise.ts";
import { endOf } from "../../testing/end.ts";
import { play, startPlace, testProxy, unending } from "../program/testing.ts";
import { acpAgent } from "./agents.ts";
import { createAcpDriver } from "./driver.ts";

/** Writes and runs what was written; told to wait, it runs a command that waits for a writer of the gate, a named pipe: nobody comes. */
const work: ScriptedProgram = ({ lastPrompt, step, results }) => {
  if (lastPrompt.includes("Wait")) return { text: "I wait.", actions: [{ run: "cat gate" }] };
  if (lastPrompt.includes("Go on")) return { text: "On we go." };
  if (step === 0) return { text: "I write.", actions: [{ write: "hello.txt", content: "hello" }] };
  if (step === 1) return { text: "I run.", actions: [{ run: 'cat hello.txt && echo " world by $HTTPS_PROXY"' }] };
  return { text: results[0]?.text.includes(`hello world by ${testProxy}`) ? "It said hello world" : "It did not work" };
};

/** The real programs start slowly on a busy machine, and some tests start one three times. */
const options = { timeout: 600_000 };

describe.concurrent.each(["codex", "gemini", "opencode"])("%s", (name) => {
  const agent = acpAgent(name);

  it("does what is allowed and not what is denied", options, async () => {
    await using place = await startPlace(({ step }) =>
      step === 0 ? { actions: [askingToWrite(name)] } : { text: "Well." },
    );
    await allowByProject(place.workdir);
    await using opened = await place.open(createAcpDriver(agent, place.surroundings), { permissions: "ask" });
    const events = await play(opened.turn("Say hello", unending), (event) => {
      if (event.type === "permission") opened.answer({ id: event.id, allow: false, reason: "not today" });
    });
    expect(events.some((event) => event.type === "permission")).toBe(true);
    await expect(access(join(place.workdir, "hello.txt"))).rejects.toThrow();
    await play(opened.turn("Say hello again", unending), (event) => {
      if (event.type === "permission") opened.answer({ id: event.id, allow: true, reason: "" });
    });
    expect(await readFile(join(place.workdir, "hello.txt"), "utf8")).toContain("hello");
    await expect(access(join(place.workdir, "started"))).rejects.toThrow();
  });

  it(
    "writes files and runs commands, turn after turn, also after a cancel and a kill, which leave no process",
    options,
    async () => {
      await using place = await startPlace(work);
      const driver = createAcpDriver(agent, place.surroundings);
      await promisify(execFile)("mkfifo", [join(place.workdir, "gate")]);
      await using opened = await place.open(driver);
      const asked = () => JSON.stringify(place.requests.at(-1)?.request);
      expectHello(await play(opened.turn("Say hello", unending)));
      expect(await readFile(join(place.workdir, "hello.txt"), "utf8")).toBe("hello");
      expect(JSON.stringify(place.requests[0]?.request)).toContain("Instructions for every agent.");
      expect(opened.steer("too early or too late")).toBe(false);

      const cancel = new AbortController();
      const waiting = opened.turn("Wait for me", { signal: cancel.signal });
      const cancelled = await play(waiting, (event) => isStart(event) && cancel.abort());
      expect(endOf(cancelled)).toMatchObject({ reason: "cancelled" });
      expect(asked()).toContain("Say hello");
      expect(await place.processes()).toEqual([]);
      expect(endOf(await play(opened.turn("Go on", unending)))).toMatchObject({
        reason: "completed",
        message: "On we go.",
      });
      expect(asked()).toContain("Wait for me");

      const killed = await play(opened.turn("Wait once more", unending), async (event) => {
        if (isStart(event)) await place.killAll();
      });
      expect(endOf(killed)).toMatchObject({ reason: "crashed" });
      expect(await place.processes()).toEqual([]);
      await using next = await place.open(driver, { state: place.state });
      expect(endOf(await play(next.turn("Go on again", unending)))).toMatchObject({ reason: "completed" });
      expect(asked()).toContain("Wait once more");
    },
  );
});

function expectHello(events: readonly AgentEvent[]): void {
  expect(endOf(events)).toEqual({ reason: "completed", message: "It said hello world" });
  const tools = events.filter((event) => event.type === "tool");
  expect(tools.map(({ phase, ok }) => [phase, ok])).toEqual([
    ["start", undefined],
    ["end", true],
    ["start", undefined],
    ["end", true],
  ]);
  expect(tools[2]).toMatchObject({ kind: "execute", input: expect.stringContaining("cat hello.txt") });
  expect(tools[3]).toMatchObject({ output: expect.stringContaining("hello world") });
}

it.concurrent.each<[string, ScriptedProgram, string]>([
  ["says nothing", () => ({ fault: "hang" }), "stuck"],
  ["does the same for ever", () => ({ text: "Again.", actions: [{ run: "echo again" }] }), "looping"],
])("the limits end codex when its model %s", options, async (_name, program, reason) => {
  await using place = await startPlace(program);
  await using opened = await place.open(createAcpDriver(acpAgent("codex"), place.surroundings));
  // A slow start is no silence of the model.
  const idleMs = reason === "stuck" ? 10_000 : 150_000;
  const limits = { totalMs: 250_000, idleMs, maxSteps: 100, maxRepeats: 3 };
  const turn = supervise((signal) => opened.turn("Begin", { signal }), { ...unending, limits });
  expect(endOf(await play(turn))).toMatchObject({ reason });
  expect(await place.processes()).toEqual([]);
});

it.concurrent.each<[string, Fault, Record<string, unknown>]>([
  ["429", { status: 429, retryAfterMs: 1 }, { reason: "rate_limited" }],
  ["a refusal", "refusal", { reason: "refused" }],
  ["401", { status: 401 }, { reason: "auth" }],
  ["404", { status: 404 }, { reason: "model_not_found" }],
  ["500", { status: 500 }, { reason: "overloaded" }],
  ["a reset", "reset", { reason: "network" }],
  ["a stream cut after some text", "cut", { reason: "truncated" }],
  ["a stream that ends early", "endEarly", { reason: "truncated" }],
  ["an error in the middle of a stream", "failure", { reason: "overloaded" }],
  ["invalid JSON", "invalidJson", { reason: "truncated" }],
])("codex has an end of its own for %s", options, async (_name, fault, end) => {
  await using place = await startPlace(() => ({ text: "Half of an answer that never comes to its end.", fault }));
  await using opened = await place.open(createAcpDriver(acpAgent("codex"), place.surroundings));
  expect(endOf(await play(opened.turn("Begin", unending)))).toMatchObject(end);
  expect(await place.processes()).toEqual([]);
});

/** Codex asks when its model says that it must; the others ask before each edit. */
function askingToWrite(name: string): Action {
  if (name !== "codex") return { write: "hello.txt", content: "hello" };
  const input = { cmd: "echo hello > hello.txt", sandbox_permissions: "require_escalated", justification: "May I?" };
  return { tool: "exec_command", input };
}

/** A project's own settings: they allow nothing that is asked for, and start no server. */
async function allowByProject(workdir: string): Promise<void> {
  const mcpServers = { own: { command: "touch", args: [join(workdir, "started")] } };
  await mkdir(join(workdir, ".gemini"));
  await writeFile(
    join(workdir, ".gemini/settings.json"),
    JSON.stringify({ tools: { allowed: ["write_file"] }, mcp: { allowed: ["own"] }, mcpServers }),
  );
}

function isStart(event: AgentEvent): boolean {
  return event.type === "tool" && event.phase === "start";
}
