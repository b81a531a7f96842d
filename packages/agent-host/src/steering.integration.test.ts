import type { Control } from "@slipway/contract";
import type { ScriptedProgram } from "@slipway/gateway/scripted";
import { run as command, type Sandbox } from "@slipway/sandbox";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import type { Run } from "./start.ts";
import { agentTestMs, drivers, openSite, type Site, toEnd } from "./testing/site.ts";

vi.setConfig({ testTimeout: agentTestMs });

const waits = "touch waiting; until [ -e /tmp/go ]; do sleep 0.05; done";

/** Waits for a file, unless the user says otherwise. */
const obedient: ScriptedProgram = ({ step, request, tools, prompt }) => {
  if (tools.length === 0) return { text: "A title" };
  // Agents put what the user says in between beside the results of tools, or into their instructions.
  const said = request.messages.flatMap(({ role, parts }) => (role === "user" ? parts : []));
  const texts = [request.system, ...said.map((part) => (part.type === "text" ? part.text : ""))];
  if (texts.some((text) => text.includes("please stop here"))) return { text: "Stopped as told." };
  if (step > 0) return { text: "Done." };
  // Codex asks for what its own limits forbid, when the model asks it to.
  const escalated = { cmd: waits, sandbox_permissions: "require_escalated", justification: "a test" };
  const asks = prompt.includes("Ask me") && tools.includes("exec_command");
  return { text: "I wait.", actions: [asks ? { tool: "exec_command", input: escalated } : { run: waits }] };
};

let site: Site;
beforeAll(async () => {
  site = await openSite({ programs: { obedient }, model: "scripted/obedient" });
});
afterAll(() => site[Symbol.asyncDispose]());

async function atWork(agent: string, sandbox: Sandbox): Promise<Run> {
  const run = await site.start(sandbox, { task: { agent, prompt: "Wait for me" } });
  await until(run, (event) => event.type === "tool");
  return run;
}

async function until(run: Run, isIt: (event: { type: string; status?: string; id?: string }) => boolean) {
  for await (const { event } of run.events()) if (event.type === "agent" && isIt(event.event)) return event.event;
  throw new Error("the run ended before");
}

const textOf = (events: Awaited<ReturnType<typeof toEnd>>["events"]) =>
  events
    .flatMap(({ event }) => (event.type === "agent" && event.event.type === "text" ? [event.event.text] : []))
    .join("");

it("what a user changes in an interrupted agent's sandbox stays and counts among its changes", async () => {
  await using sandbox = await site.sandbox("builtin");
  await using run = await atWork("builtin", sandbox);
  await run.send({ type: "interrupt" });
  await until(run, (event) => event.type === "status" && event.status === "interrupted");
  await command(sandbox, "echo mine > by-hand.txt", { cwd: "/workspace" });
  await run.send({ type: "message", text: "please stop here" });
  const { events, end } = await toEnd(run);
  expect(end).toMatchObject({ reason: "completed" });
  const changed = events.flatMap(({ event }) =>
    event.type === "agent" && event.event.type === "file_change" ? [event.event.path] : [],
  );
  expect(changed).toContain("by-hand.txt");
});

describe.concurrent.each(drivers)("%s", (agent) => {
  it("takes up a message, at the latest when its turn ends", async () => {
    await using sandbox = await site.sandbox(agent);
    await using run = await atWork(agent, sandbox);
    await run.send({ type: "message", text: "please stop here" });
    // Once its runner has it: else the run could be over before.
    await command(sandbox, "until grep -qsx 1 /var/tmp/slipway-run/*/*/control-sequence; do sleep 0.05; done");
    await sandbox.files.write("/tmp/go", "");
    const { events, end } = await toEnd(run);
    expect(end).toMatchObject({ reason: "completed" });
    expect(textOf(events)).toContain("Stopped as told.");
  });

  it("stops at an interrupt and continues with a message", async () => {
    await using sandbox = await site.sandbox(agent);
    await using run = await atWork(agent, sandbox);
    await run.send({ type: "interrupt" });
    await until(run, (event) => event.type === "status" && event.status === "interrupted");
    await run.send({ type: "message", text: "please stop here" });
    const { events, end } = await toEnd(run);
    expect(end).toMatchObject({ reason: "completed" });
    expect(textOf(events)).toContain("Stopped as told.");
  });

  it("ends with all its processes when it is cancelled", async () => {
    await using sandbox = await site.sandbox(agent);
    await using run = await atWork(agent, sandbox);
    await run.send({ type: "cancel" });
    expect((await toEnd(run)).end).toMatchObject({ reason: "cancelled" });
    const { stdout } = await command(sandbox, "ps -e -o args=");
    expect(stdout).not.toMatch(/runner\.mjs|claude|codex|opencode|until/);
  });

  it.each<[string, boolean]>([
    ["allowed", true],
    ["refused", false],
  ])("asks first if it must, and is %s", async (_, allow) => {
    await using sandbox = await site.sandbox(agent);
    await sandbox.files.write("/tmp/go", "");
    await using run = await site.start(sandbox, { task: { agent, prompt: "Ask me", permissions: "ask" } });
    const asked = await until(run, (event) => event.type === "permission");
    const answer: Control = { type: "permission", id: (asked as { id: string }).id, allow, reason: "a test" };
    await run.send(answer);
    const { events, end } = await toEnd(run);
    expect(["completed", "cancelled"]).toContain(end.reason);
    const ended = events.flatMap(({ event }) =>
      event.type === "agent" && event.event.type === "tool" && event.event.phase === "end" ? [event.event.ok] : [],
    );
    if (allow) expect(ended).toContain(true);
    else expect(ended).not.toContain(true);
  });
});
