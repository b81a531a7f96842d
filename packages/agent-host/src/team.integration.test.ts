import { team } from "@slipway/gateway/scripted";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { agentTestMs, drivers, openSite, type Site, toEnd } from "./testing/site.ts";

vi.setConfig({ testTimeout: agentTestMs });

let site: Site;
beforeAll(async () => {
  site = await openSite({ programs: { team }, model: "scripted/team" });
});
afterAll(() => site[Symbol.asyncDispose]());

/** As many as there may be, and two where each is a heavy program. */
const teams = drivers.map((agent) =>
  agent === "builtin" ? ([agent, 4, "four"] as const) : ([agent, 2, "two"] as const),
);

describe.each(teams)("a lead and workers, each %s, %i of them,", (agent, workers, parts) => {
  it("share a task list and a scratchpad in one sandbox", async () => {
    await using sandbox = await site.sandbox(agent);
    await using run = await site.start(sandbox, { task: { agent, prompt: `Build ${parts} parts`, workers } });
    const { events, end } = await toEnd(run);
    expect(end, JSON.stringify(events.slice(-3))).toMatchObject({ reason: "completed" });
    const tasks = events.flatMap(({ event }) => (event.type === "task" ? [event.task] : []));
    const last = new Map(tasks.map((task) => [task.id, task]));
    expect(last.size).toBe(workers);
    for (const { status, owner } of last.values()) {
      expect(status).toBe("completed");
      expect(owner).toMatch(/^worker-[1-4]$/);
    }
    const speakers = new Set(events.flatMap(({ event }) => (event.type === "agent" ? [event.agent] : [])));
    expect([...speakers].sort()).toEqual([
      "lead",
      ...Array.from({ length: workers }, (_, index) => `worker-${index + 1}`),
    ]);
    expect(events.some(({ event }) => event.type === "note")).toBe(true);
  });
});
