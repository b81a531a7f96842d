import { isSideCall, type ScriptedProgram, sideAnswer } from "@slipway/gateway/scripted";
import { run as command } from "@slipway/sandbox";
import { afterAll, beforeAll, expect, it, vi } from "vitest";
import { agentTestMs, openSite, type Site, toEnd } from "./testing/site.ts";

vi.setConfig({ testTimeout: agentTestMs });

/** Its agent waits for a file, so that its runner can be killed in the middle of a turn. */
const patient: ScriptedProgram = (request) => {
  if (isSideCall(request)) return sideAnswer(request);
  if (request.step > 0) return { text: "Done." };
  return { text: "I wait.", actions: [{ run: "until [ -e /tmp/go ]; do sleep 0.05; done" }] };
};

let site: Site;
beforeAll(async () => {
  site = await openSite({ programs: { patient }, model: "scripted/patient" });
});
afterAll(() => site[Symbol.asyncDispose]());

it.each(["claude-code", "acp:codex"])(
  "a runner of %s that is killed in a turn is started again, and goes on",
  async (agent) => {
    await using sandbox = await site.sandbox(agent);
    await using run = await site.start(sandbox, { task: { agent, prompt: "Wait" } });
    for await (const { event } of run.events()) {
      if (event.type === "agent" && event.event.type === "tool") break;
    }
    await command(sandbox, "pkill -9 -f /opt/runner/runner.mjs");
    await sandbox.files.write("/tmp/go", "");
    const { events, end } = await toEnd(run);
    expect(end).toMatchObject({ reason: "completed" });
    expect(events.some(({ event }) => event.type === "resumed")).toBe(true);
    const { stdout } = await command(sandbox, "ps -e -o args=");
    expect(stdout).not.toMatch(/runner\.mjs|claude|codex/);
  },
);
