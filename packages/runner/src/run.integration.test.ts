import { SlipwayError } from "@slipway/contract";
import type { ScriptedProgram } from "@slipway/gateway/scripted";
import { loop, team } from "@slipway/gateway/scripted";
import { describe, expect, test } from "vitest";
import type { Progress } from "./team/checkpoint.ts";
import { endOf } from "./testing/end.ts";
import { agentEvents, isStatus, isToolStart, startTestRun } from "./testing/run.ts";

const waiting: ScriptedProgram = ({ lastPrompt }) =>
  lastPrompt === "Go" ? { actions: [{ run: "sleep 1000" }] } : { text: `I heard: ${lastPrompt}` };

test("a run reports what its agent does, the files that change, and its end", async () => {
  const { channel, over } = await startTestRun(({ step }) => {
    if (step === 0) return { actions: [{ run: "mkdir src && echo 1 > src/a.txt && echo 2 > b.txt" }] };
    if (step === 1) return { actions: [{ run: "rm b.txt; echo 3 >> src/a.txt" }] };
    return { text: "Done." };
  });
  await over;
  const events = agentEvents(channel.events);
  expect(events.filter((event) => event.type === "file_change")).toEqual([
    { type: "file_change", path: "b.txt", action: "added" },
    { type: "file_change", path: "src/a.txt", action: "added" },
    { type: "file_change", path: "b.txt", action: "deleted" },
    { type: "file_change", path: "src/a.txt", action: "modified" },
  ]);
  expect(endOf(events)).toEqual({ reason: "completed", message: "Done." });
  expect(endOf(channel.events)).toEqual({ reason: "completed", message: "Done." });
});

describe("a failed run has a typed end", () => {
  test.each([
    ["looping", loop, { maxRepeats: 2 }],
    ["max_steps", ({ step }) => ({ actions: [{ run: `echo ${step}` }] }), { maxSteps: 2 }],
    ["stuck", () => ({ fault: "hang" }), { idleMs: 300 }],
    ["timeout", () => ({ fault: "hangStream", text: "Some text" }), { totalMs: 400 }],
    ["truncated", () => ({ fault: "cut", text: "Almost done with all of it" }), {}],
    ["refused", () => ({ fault: "refusal" }), {}],
  ] as [string, ScriptedProgram, object][])("%s", async (reason, program, limits) => {
    const { channel, over } = await startTestRun(program, { limits });
    await over;
    expect(endOf(channel.events)).toMatchObject({ reason });
    expect(agentEvents(channel.events).filter(({ type }) => type === "ended")).toHaveLength(1);
  });

  test("an agent that cannot be opened", async () => {
    const driver = {
      name: "builtin",
      open: async () => {
        throw new SlipwayError("component_missing", "There is no agent.");
      },
    };
    const { channel, over } = await startTestRun(() => ({ text: "" }), {}, { driver });
    await over;
    expect(endOf(channel.events)).toEqual({ reason: "internal", message: "component_missing: There is no agent." });
  });
});

describe("the user", () => {
  test("cancels a run", async () => {
    const { channel, over } = await startTestRun(waiting);
    await channel.until(isToolStart);
    channel.send({ type: "cancel" });
    await over;
    expect(endOf(channel.events)).toMatchObject({ reason: "cancelled" });
  });

  test("ends a run by a signal to the runner", async () => {
    const { channel, over, cancel } = await startTestRun(waiting);
    await channel.until(isToolStart);
    cancel();
    await over;
    expect(endOf(channel.events)).toMatchObject({ reason: "cancelled" });
  });

  test("interrupts an agent, which continues with what the user says", async () => {
    const { channel, over } = await startTestRun(waiting);
    await channel.until(isToolStart);
    channel.send({ type: "interrupt" });
    await channel.until(isStatus("interrupted"));
    channel.send({ type: "message", text: "Something else" });
    await over;
    expect(endOf(channel.events)).toMatchObject({ reason: "completed", message: "I heard: Something else" });
    expect(agentEvents(channel.events).filter(({ type }) => type === "ended")).toHaveLength(1);
  });

  test("interrupts and sends a message at once", async () => {
    const { channel, over } = await startTestRun(waiting);
    await channel.until(isToolStart);
    channel.send({ type: "interrupt" });
    channel.send({ type: "message", text: "Something else" });
    await over;
    expect(endOf(channel.events)).toMatchObject({ reason: "completed", message: "I heard: Something else" });
  });

  test("cancels a run that waits for a message", async () => {
    const { channel, over } = await startTestRun(waiting);
    await channel.until(isToolStart);
    channel.send({ type: "interrupt" });
    await channel.until(isStatus("interrupted"));
    channel.send({ type: "cancel" });
    await over;
    expect(endOf(channel.events)).toMatchObject({ reason: "cancelled" });
  });

  test("answers an agent that asks", async () => {
    const { channel, over } = await startTestRun(
      ({ step, results }) => (step === 0 ? { actions: [{ run: "echo yes" }] } : { text: results[0]?.text ?? "" }),
      { permissions: "ask" },
    );
    const asked = await channel.until((event) => event.type === "agent" && event.event.type === "permission");
    if (asked.type !== "agent" || asked.event.type !== "permission") throw new Error("asked nothing");
    channel.send({ type: "permission", id: asked.event.id, allow: true, reason: "" });
    await over;
    expect(endOf(channel.events)).toMatchObject({ reason: "completed", message: expect.stringContaining("yes") });
  });

  test("adds context for an agent at work", async () => {
    const { channel, over } = await startTestRun(({ prompt, lastPrompt, step }) =>
      prompt === lastPrompt ? { actions: [{ run: `sleep 0.2 # ${step}` }] } : { text: lastPrompt },
    );
    await channel.until(isToolStart);
    channel.send({ type: "context", text: "The port is 8080." });
    await over;
    expect(endOf(channel.events)).toMatchObject({ message: expect.stringContaining("The port is 8080.") });
  });
});

describe("a run whose runner was restarted", () => {
  const found: Progress = {
    step: 4,
    spentMs: 1_000,
    stage: { name: "lead", round: 1, prompt: "Go" },
    board: { tasks: [], notes: [] },
    mail: { letters: [], context: ["The port is 8080."], isInterrupted: false },
  };

  test("reports it and has the context that the user added", async () => {
    const { channel, over } = await startTestRun(({ system }) => ({ text: system }), {}, { found });
    await over;
    expect(channel.events[0]).toEqual({ type: "resumed", step: 4 });
    expect(endOf(channel.events)).toMatchObject({ message: expect.stringContaining("The port is 8080.") });
  });

  test("while it waited for a message still waits", async () => {
    const mail = { ...found.mail, isInterrupted: true };
    const { channel, over } = await startTestRun(
      ({ lastPrompt }) => ({ text: lastPrompt }),
      {},
      { found: { ...found, mail } },
    );
    await channel.until(isStatus("interrupted"));
    channel.send({ type: "message", text: "Go on" });
    await over;
    expect(endOf(channel.events)).toMatchObject({ reason: "completed", message: expect.stringContaining("Go on") });
  });

  test("has only the rest of its time", async () => {
    const { channel, over } = await startTestRun(waiting, { limits: { totalMs: 1_100 } }, { found });
    await over;
    expect(endOf(channel.events)).toMatchObject({ reason: "timeout" });
  });
});

describe("a team", () => {
  test("of a lead and workers shares files, tasks and notes", async () => {
    const { channel, over } = await startTestRun(team, { workers: 2, prompt: "Greet" });
    await over;
    expect(endOf(channel.events)).toEqual({ reason: "completed", message: "All 2 tasks are done." });
    const tasks = channel.events.flatMap((event) => (event.type === "task" ? [event.task] : []));
    expect(
      tasks
        .filter(({ status }) => status === "completed")
        .map(({ id }) => id)
        .sort(),
    ).toEqual([1, 2]);
    expect(new Set(tasks.flatMap(({ owner }) => owner ?? []))).toEqual(new Set(["worker-1", "worker-2"]));
    const notes = channel.events.flatMap((event) => (event.type === "note" ? [event.text] : []));
    expect(notes.sort()).toEqual(["farewell.txt is written", "greeting.txt is written"]);
  });

  test("continues when a worker fails, and the lead learns of it", async () => {
    const { channel, over } = await startTestRun(
      async (request) => {
        const isWorker = !request.tools.includes("add_tasks");
        if (isWorker && request.lastPrompt.includes("Write the farewell"))
          return { fault: "cut", text: "I will write it" };
        if (request.lastPrompt.startsWith("The workers are done")) return { text: request.lastPrompt };
        return await team(request);
      },
      { workers: 1 },
    );
    await over;
    const message = expect.stringMatching(/Write the greeting: completed[\s\S]*Write the farewell: failed\ntruncated/);
    expect(endOf(channel.events)).toMatchObject({ reason: "completed", message });
  });

  test("whose lead always hands out more tasks ends", async () => {
    const { channel, over } = await startTestRun(
      ({ tools, step }) => {
        if (!tools.includes("add_tasks") || step > 0) return { text: "Done." };
        return { actions: [{ tool: "add_tasks", input: { tasks: [{ title: "More", details: "" }] } }] };
      },
      { workers: 1 },
    );
    await over;
    expect(endOf(channel.events)).toMatchObject({ reason: "completed" });
    expect(channel.events.filter((event) => event.type === "task" && event.task.status === "completed")).toHaveLength(
      4,
    );
  });
});
