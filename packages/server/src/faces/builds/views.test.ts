import { expect, test } from "vitest";
import { generatedIntent } from "../../simulated/generated.ts";
import { openWorld } from "../../testing/world.ts";
import { localUser } from "../principal.ts";
import { eventViewOf } from "./views.ts";

const event = (data: object, type = "intent.drafted") =>
  eventViewOf({ sequence: 1, at: 1, type, key: null, source: "report", data: { ...data } });

test("a drafted intent tells by their titles what was wrong with the repository, where that was looked at", () => {
  const open = generatedIntent({ request: "a packing list" });
  const problem = { title: "npm test ended with exit code 1", evidence: "long", files: ["a.js"] };
  const fix = (problems: object[]) => ({ open, start: { mode: "fix", diagnosis: { problems } } });
  expect(event(fix([problem])).data).toEqual({ criteria: 5, workflows: 2, problems: [problem.title] });
  expect(event(fix([])).data).toEqual({ criteria: 5, workflows: 2, problems: [] });
  expect(event({ open, start: { mode: "new" } }).data).toEqual({ criteria: 5, workflows: 2 });
  expect(event({ open, start: null }).data).toEqual({ criteria: 5, workflows: 2 });
});

test("an event of another version is unknown, and what it carries is not shown", () => {
  const locked = event({ locked: {}, checks: ["secret"] }, "intent.locked");
  expect(locked).toMatchObject({ type: "unknown", data: { type: "intent.locked", data: {} } });
  expect(event({ task: "cart" }, "task.merged")).toMatchObject({ type: "task.merged", data: { task: "cart" } });
});

test("a build lists its tasks in the order of its plan", async () => {
  await using server = await openWorld({ http: {} });
  const { id } = await server.builds.start(localUser, {
    request: "a shop",
    mode: "new",
    project: "p",
    settings: {},
    hold: "plan",
    secrets: [],
  });
  // Answers when all of its turns are over.
  await server.tell(id);
  const planned = (await server.builds.plan(localUser, id)).tasks.map((task) => task.id);
  expect((await server.builds.get(localUser, id)).taskList.map((task) => task.id)).toEqual(planned);
  expect(planned).not.toEqual(planned.toSorted());
});
