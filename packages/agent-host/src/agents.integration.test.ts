import { demo } from "@slipway/gateway/scripted";
import { readBytes, run } from "@slipway/sandbox";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { agents, agentTestMs, openSite, type Site, toEnd } from "./testing/site.ts";

vi.setConfig({ testTimeout: agentTestMs });

let site: Site;
beforeAll(async () => {
  site = await openSite({ programs: { demo }, model: "scripted/demo" });
});
afterAll(() => site[Symbol.asyncDispose]());

describe.each(agents)("%s, in a sandbox without a network,", (agent) => {
  it("writes files and runs commands", async () => {
    await using sandbox = await site.sandbox(agent);
    await using started = await site.start(sandbox, { task: { agent, prompt: "Say hello" } });
    const { events, end } = await toEnd(started);
    expect(end).toMatchObject({ reason: "completed" });
    const reported = events.flatMap(({ event }) => (event.type === "agent" ? [event.event] : []));
    expect(reported).toContainEqual(expect.objectContaining({ type: "tool", phase: "end", kind: "execute", ok: true }));
    const changed = reported.filter(({ type }) => type === "file_change");
    expect(changed.length).toBeGreaterThan(0);
    for (const change of changed) {
      if (change.type === "file_change") await readBytes(sandbox.files, `/workspace/${change.path}`);
    }
    expect((await started.balance()).spentMicroUsd).toBeGreaterThan(0);
    // Nothing of the run is left: the sandbox's first process, its forwarder, and the command that looks.
    const { stdout } = await run(sandbox, "ps -e -o args=");
    expect(stdout).not.toMatch(/runner\.mjs|claude|codex|gemini|opencode/);
  });
});
