import { execFile } from "node:child_process";
import { access, mkdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import type { AgentEvent } from "@slipway/contract";
import type { Fault, ScriptedProgram } from "@slipway/gateway/scripted";
import { expect, it, vi } from "vitest";
import { supervise } from "../../supervise/supervise.ts";
import { endOf } from "../../testing/end.ts";
import type { Agent } from "../driver.ts";
import { play, startPlace, testProxy, unending } from "../program/testing.ts";
import { createClaudeCodeDriver } from "./driver.ts";

vi.setConfig({ testTimeout: 300_000 });

const writeAndRun: ScriptedProgram = ({ step, results }) => {
  if (step === 0)
    return { thinking: "A file first.", text: "I write.", actions: [{ write: "hello.txt", content: "hello" }] };
  if (step === 1) return { text: "I run.", actions: [{ run: 'cat hello.txt && echo " world by $HTTPS_PROXY"' }] };
  return { text: `It said ${results[0]?.text}` };
};

/** Runs a command that waits until the gate, a named pipe, is opened. */
const waitAtGate: ScriptedProgram = ({ step }) =>
  step === 0 ? { text: "I wait.", actions: [{ run: "cat gate" }] } : { text: "The gate is open." };

it.concurrent("it writes files and runs commands", async () => {
  await using place = await startPlace(writeAndRun);
  await using agent = await place.open(createClaudeCodeDriver(place.surroundings));
  const events = await play(agent.turn("Say hello", unending));
  expect(endOf(events)).toEqual({ reason: "completed", message: `It said hello world by ${testProxy}` });
  expect(await readFile(join(place.workdir, "hello.txt"), "utf8")).toBe("hello");
  expect(events).toContainEqual({ type: "text", channel: "thinking", text: "A file first." });
  expect(
    events.filter((event) => event.type === "tool").map(({ phase, name, kind, ok }) => [phase, name, kind, ok]),
  ).toEqual([
    ["start", "Write", "edit", undefined],
    ["end", "Write", "edit", true],
    ["start", "Bash", "execute", undefined],
    ["end", "Bash", "execute", true],
  ]);
  expect(events.find((event) => event.type === "usage")?.usage.output).toBeGreaterThan(0);
  expect(place.requests[0]?.system).toContain("Instructions for every agent.");
  expect(JSON.stringify(place.requests[0]?.request)).not.toContain("Co-Authored-By");
  expect(await place.processes()).toEqual([]);
});

it.concurrent("what is denied is not done, and the agent hears why", async () => {
  await using place = await startPlace(writeAndRun);
  await using agent = await place.open(createClaudeCodeDriver(place.surroundings), { permissions: "ask" });
  const events = await play(agent.turn("Say hello", unending), answerAll(agent, false));
  expect(events).toContainEqual(expect.objectContaining({ type: "permission", tool: "Write" }));
  expect(place.requests[1]?.results).toEqual([
    expect.objectContaining({ isError: true, text: expect.stringContaining("not today") }),
  ]);
  await expect(access(join(place.workdir, "hello.txt"))).rejects.toThrow();
});

it.concurrent("what is allowed is done", async () => {
  await using place = await startPlace(writeAndRun);
  await using agent = await place.open(createClaudeCodeDriver(place.surroundings), { permissions: "ask" });
  const events = await play(agent.turn("Say hello", unending), answerAll(agent, true));
  expect(events.some((event) => event.type === "permission")).toBe(true);
  expect(await readFile(join(place.workdir, "hello.txt"), "utf8")).toBe("hello");
});

it.concurrent("words of the user reach a turn that runs", async () => {
  await using place = await startPlace((request) =>
    JSON.stringify(request.request).includes("pineapple") ? { text: "Pineapple it is." } : waitAtGate(request),
  );
  await using agent = await place.open(createClaudeCodeDriver(place.surroundings));
  const gate = await makeGate(place.workdir);
  expect(agent.steer("too early")).toBe(false);
  const events = await play(agent.turn("Choose a fruit", unending), async (event) => {
    if (!isStart(event)) return;
    expect(agent.steer("Take the pineapple.")).toBe(true);
    await writeFile(gate, "open");
  });
  expect(endOf(events)).toMatchObject({ reason: "completed", message: "Pineapple it is." });
  expect(agent.steer("too late")).toBe(false);
});

it.concurrent("a cancelled turn leaves no process, and the conversation goes on in the next", async () => {
  await using place = await startPlace((request) =>
    request.lastPrompt.includes("Wait") ? waitAtGate(request) : { text: "On we go." },
  );
  await using agent = await place.open(createClaudeCodeDriver(place.surroundings));
  await makeGate(place.workdir);
  const cancel = new AbortController();
  const events = await play(
    agent.turn("Wait for me", { signal: cancel.signal }),
    (event) => isStart(event) && cancel.abort(),
  );
  expect(endOf(events)).toEqual({ reason: "cancelled", message: "" });
  expect(await place.processes()).toEqual([]);
  expect(endOf(await play(agent.turn("Go on", unending)))).toMatchObject({ reason: "completed", message: "On we go." });
  expect(place.requests.at(-1)?.prompt).toContain("Wait for me");
});

it.concurrent("a killed program is a crash, and another agent takes up its conversation", async () => {
  await using place = await startPlace((request) =>
    request.lastPrompt.includes("Wait") ? waitAtGate(request) : { text: "On we go." },
  );
  const driver = createClaudeCodeDriver(place.surroundings);
  await makeGate(place.workdir);
  const first = await place.open(driver);
  const events = await play(first.turn("Wait for me", unending), async (event) => {
    if (isStart(event)) await place.killAll();
  });
  expect(endOf(events)).toMatchObject({ reason: "crashed" });
  expect(await place.processes()).toEqual([]);
  await using second = await place.open(driver, { state: place.state });
  expect(endOf(await play(second.turn("Go on", unending)))).toMatchObject({ reason: "completed" });
  expect(place.requests.at(-1)?.prompt).toContain("Wait for me");
});

it.concurrent("a conversation that is gone is said to be, and then begun anew", async () => {
  await using place = await startPlace();
  const state = { session: "11111111-2222-4333-8444-555555555555" };
  await using agent = await place.open(createClaudeCodeDriver(place.surroundings), { state });
  expect(endOf(await play(agent.turn("Go on", unending)))).toMatchObject({ reason: "session_lost" });
  expect(endOf(await play(agent.turn("Begin", unending)))).toMatchObject({ reason: "completed" });
});

it.concurrent("an agent without the run's tools does not work", async () => {
  await using place = await startPlace();
  const tools = { definitions: [], command: ["/bin/false"] };
  await using agent = await place.open(createClaudeCodeDriver(place.surroundings), { tools });
  expect(endOf(await play(agent.turn("Begin", unending)))).toMatchObject({ reason: "internal" });
  expect(await place.processes()).toEqual([]);
});

it.concurrent("a project's settings run nothing", async () => {
  await using place = await startPlace(writeAndRun);
  const hook = { hooks: [{ type: "command", command: "touch hooked" }] };
  await mkdir(join(place.workdir, ".claude"));
  await writeFile(
    join(place.workdir, ".claude/settings.json"),
    JSON.stringify({ hooks: { SessionStart: [hook], PreToolUse: [hook] } }),
  );
  await using agent = await place.open(createClaudeCodeDriver(place.surroundings));
  await play(agent.turn("/hello", unending));
  expect(place.requests[0]?.prompt).toContain("/hello");
  await expect(access(join(place.workdir, "hooked"))).rejects.toThrow();
});

it.concurrent("the most steps end the turn", async () => {
  await using place = await startPlace(({ step }) => ({ text: `${step}`, actions: [{ run: `echo ${step}` }] }));
  const limits = { totalMs: 60_000, idleMs: 60_000, maxSteps: 2, maxRepeats: 6 };
  await using agent = await place.open(createClaudeCodeDriver(place.surroundings), { limits });
  expect(endOf(await play(agent.turn("Count", unending)))).toMatchObject({ reason: "max_steps" });
});

it.concurrent.each<[string, Fault, Record<string, unknown>]>([
  ["429", { status: 429 }, { reason: "rate_limited" }],
  ["500", { status: 500 }, { reason: "overloaded" }],
  ["401", { status: 401 }, { reason: "auth" }],
  ["404", { status: 404 }, { reason: "model_not_found" }],
  ["400", { status: 400 }, { reason: "invalid_request" }],
  ["a reset", "reset", { reason: "network" }],
  // A cut that comes with the first words may be all that it has seen.
  ["a stream cut after some text", "cut", { reason: expect.stringMatching(/^(truncated|network)$/) }],
  ["a stream that ends early", "endEarly", { reason: "truncated" }],
  ["an error in the middle of a stream", "failure", { reason: "overloaded" }],
  ["invalid JSON", "invalidJson", { reason: "truncated" }],
  ["a refusal", "refusal", { reason: "refused" }],
])("%s has its own end and leaves no process", async (_name, fault, end) => {
  await using place = await startPlace(() => ({ text: "Half of an answer that never comes to its end.", fault }));
  await using agent = await place.open(createClaudeCodeDriver(place.surroundings));
  expect(endOf(await play(agent.turn("Begin", unending)))).toMatchObject(end);
  expect(await place.processes()).toEqual([]);
});

it.concurrent.each<[string, ScriptedProgram, string]>([
  ["a model that says nothing", () => ({ fault: "hang" }), "stuck"],
  ["a model that stops in the middle", () => ({ text: "Half of an answer.", fault: "hangStream" }), "stuck"],
  ["a model that does the same for ever", () => ({ actions: [{ run: "echo again" }] }), "looping"],
])("the limits end %s, and no process is left", async (_name, program, reason) => {
  await using place = await startPlace(program);
  await using agent = await place.open(createClaudeCodeDriver(place.surroundings));
  // A slow start is no silence of the model.
  const idleMs = reason === "stuck" ? 4_000 : 150_000;
  const limits = { totalMs: 250_000, idleMs, maxSteps: 100, maxRepeats: 3 };
  const turn = supervise((signal) => agent.turn("Begin", { signal }), { ...unending, limits });
  expect(endOf(await play(turn))).toMatchObject({ reason });
  expect(await place.processes()).toEqual([]);
});

function answerAll(agent: Agent, allow: boolean) {
  return (event: AgentEvent) =>
    event.type === "permission" && agent.answer({ id: event.id, allow, reason: "not today" });
}

function isStart(event: AgentEvent): boolean {
  return event.type === "tool" && event.phase === "start";
}

async function makeGate(workdir: string): Promise<string> {
  const gate = join(workdir, "gate");
  await promisify(execFile)("mkfifo", [gate]);
  return gate;
}
