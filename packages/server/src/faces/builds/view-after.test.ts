import { type BuildView, endAs, newId, viewAfter } from "@slipway/contract";
import { report } from "@slipway/engine";
import fc from "fast-check";
import { expect, test } from "vitest";
import { openWorld, type WorldWith } from "../../testing/world.ts";
import { localUser } from "../principal.ts";

const steps = ["progress", "quiet", "merged", "failed", "died", "pause", "resume", "cancel"] as const;
type Step = (typeof steps)[number];
const ends = { merged: "merged", failed: "checks_failed", died: "runner_lost" } as const;

/** What a view after events says as the server's view does: of attempts, those that the view before had. */
function covered({ status, reason, endedAt, lastEvent, taskList, attempts }: BuildView, before: BuildView) {
  const known = attempts.filter(({ id }) => before.attempts.some((attempt) => attempt.id === id));
  const done = taskList.filter((task) => ["merged", "satisfied", "failed"].includes(task.status));
  return {
    status,
    reason,
    lastEvent,
    hasEnded: endedAt !== null,
    done: done.map(({ id, status, reason, refused }) => ({ id, status, reason, refused })),
    said: known.flatMap(({ id, phase, doing }) => (doing === null ? [] : [{ id, phase, doing }])),
  };
}

async function take(server: WorldWith<"http">, { id, status, attempts, lastEvent }: BuildView, step: Step) {
  const [attempt] = attempts;
  if (step === "pause" || step === "resume" || step === "cancel") {
    return status === "cancelled" ? undefined : await server.builds[step](localUser, id);
  }
  if (attempt === undefined) return;
  const life = { task: attempt.task, attempt: attempt.number, respawn: 0 };
  const text = step === "quiet" ? "" : `edit ${lastEvent}`;
  if (step === "progress" || step === "quiet") {
    return await server.tell(id, report("attempt.progress", null, { ...life, phase: "build", status: "begun", text }));
  }
  await server.tell(id, report("attempt.ended", null, { ...life, end: endAs(ends[step]) }));
}

test("a view and the events after it make the view that the server shows later", async () => {
  const property = async (script: readonly Step[]) => {
    await using server = await openWorld({ http: {} });
    const request = { request: "a shop", mode: "new", project: "p", settings: {}, hold: "none", secrets: [] } as const;
    const { id } = await server.builds.start(localUser, { ...request, id: newId("bld"), secrets: [] });
    await server.tell(id);
    const views = [await server.builds.get(localUser, id)];
    for (const step of script) {
      await take(server, views.at(-1) as BuildView, step);
      views.push(await server.builds.get(localUser, id));
    }
    const { events } = await server.builds.events(localUser, id, { after: 0, limit: 500 });
    for (const [index, before] of views.entries()) {
      for (const later of views.slice(index)) {
        const told = events.filter(({ sequence }) => sequence <= later.lastEvent);
        expect(covered(told.reduce(viewAfter, before), before)).toEqual(covered(later, before));
      }
    }
  };
  const scripts = fc.array(fc.constantFrom(...steps), { minLength: 1, maxLength: 10 });
  await fc.assert(fc.asyncProperty(scripts, property), {
    numRuns: 12,
    examples: [[["progress", "pause", "resume", "merged", "progress", "quiet", "failed", "merged", "cancel"]]],
  });
});
