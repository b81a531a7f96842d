import { expect, test } from "vitest";
import { startTestServer } from "../../http/testing.ts";
import { eventViewOf } from "./views.ts";

const event = (data: Record<string, never> | object) =>
  eventViewOf({ sequence: 1, at: 1, type: "intent.drafted", key: null, source: "report", data: { ...data } });

test("a drafted intent tells by their titles what was wrong with the repository, where that was looked at", () => {
  const open = { status: "open", intent: { criteria: [1, 2], workflows: [1] } };
  const problem = { title: "npm test ended with exit code 1", evidence: "long", files: ["a.js"] };
  const fix = (problems: object[]) => ({ open, start: { mode: "fix", diagnosis: { problems } } });
  expect(event(fix([problem])).data).toEqual({ criteria: 2, workflows: 1, problems: [problem.title] });
  expect(event(fix([])).data).toEqual({ criteria: 2, workflows: 1, problems: [] });
  expect(event({ open, start: { mode: "new" } }).data).toEqual({ criteria: 2, workflows: 1 });
  expect(event({ open, start: null }).data).toEqual({ criteria: 2, workflows: 1 });
});

test("a build lists its tasks in the order of its plan", async () => {
  await using server = await startTestServer();
  const { id } = await server.builds.start("ada", {
    request: "a shop",
    mode: "new",
    project: "p",
    settings: {},
    hold: "plan",
    secrets: [],
  });
  // Answers when all of its turns are over.
  await server.tell(id);
  const planned = (await server.builds.plan(id)).tasks.map((task) => task.id);
  expect((await server.builds.get(id)).taskList.map((task) => task.id)).toEqual(planned);
  expect(planned).not.toEqual(planned.toSorted());
});
