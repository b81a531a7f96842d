import { team } from "@slipway/gateway/scripted";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { agentTestMs, drivers, openSite, type Site, toEnd } from "./testing/site.ts";

vi.setConfig({ testTimeout: agentTestMs });

let site: Site;
beforeAll(async () => {
  site = await openSite({ programs: { team }, model: "scripted/team" });
});
afterAll(() => site[Symbol.asyncDispose]());

describe.each(drivers)("a lead and workers, each %s,", (agent) => {
  it("share a task list and a scratchpad in one sandbox", async () => {
    await using sandbox = await site.sandbox(agent);
    await using run = await site.start(sandbox, { task: { agent, prompt: "Build two parts", workers: 2 } });
    const { events, end } = await toEnd(run);
    expect(end, JSON.stringify(events.slice(-3))).toMatchObject({ reason: "completed" });
    const tasks = events.flatMap(({ event }) => (event.type === "task" ? [event.task] : []));
    expect(tasks.length).toBeGreaterThan(0);
    const last = new Map(tasks.map((task) => [task.id, task]));
    for (const { status, owner } of last.values()) {
      expect(status).toBe("completed");
      expect(owner).toMatch(/^worker-[12]$/);
    }
    const speakers = new Set(events.flatMap(({ event }) => (event.type === "agent" ? [event.agent] : [])));
    expect([...speakers].sort()).toEqual(["lead", "worker-1", "worker-2"]);
    expect(events.some(({ event }) => event.type === "note")).toBe(true);
  });
});
