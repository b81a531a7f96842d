import { type CreateSandboxInput, newId, taskOrderSchema } from "@slipway/contract";
import { maxPage, patternScope } from "@slipway/engine";
import { expect, it, onTestFinished } from "vitest";
import { attemptAt, task } from "../../testing/plans.ts";
import { openWorld } from "../../testing/world.ts";
import { beginAttempt, readOrder } from "./order.ts";
import { openPlace } from "./place.ts";
import type { AttemptSurroundings } from "./surroundings.ts";
import { plannedBuild } from "./testing.ts";

async function openPlanned(names: readonly string[] = ["list"]) {
  const world = await openWorld({ store: {} });
  onTestFinished(() => world[Symbol.asyncDispose]());
  return { ...world, build: await plannedBuild(world, names) };
}

const base = "a".repeat(40);

it("an order has the task, its own criteria and the intent, but not how they are checked", async () => {
  const { store, build, apply } = await openPlanned();
  const check = {
    build: build.id,
    criterion: "add-item",
    intentHash: "hash",
    check: { type: "browser", secret: "SEE" },
  };
  await apply(build, { records: { checks: [check] } });
  const order = await readOrder(store, build, attemptAt("list"), base);
  expect(taskOrderSchema.parse(order)).toMatchObject({
    task: { id: "list", title: "Make list" },
    criteria: [{ id: "add-item", statement: "An item can be added to a list" }],
    base,
    branch: "attempt/list-1",
    level: null,
    earlier: [],
  });
  expect(order.intent).toContain("A packing list");
  expect(order.surface).toContain('Controls:\n- textbox "Item" on /\n- button "Add" on /');
  expect(JSON.stringify(order)).not.toMatch(/SEE|browser/);
});

it("a later attempt gets the ends of earlier ones and the known fix", async () => {
  // There are more than a page of tasks, and it is the last of them.
  const { store, build, apply } = await openPlanned([
    ...Array.from({ length: maxPage }, (_, index) => `a-${index}`),
    "list",
  ]);
  const learnt = { project: patternScope(build), signature: "E1", error: "E1", fix: "Write it in lower case." };
  await store.patterns.learn({ ...learnt, attempt: newId("att"), learntAt: 0 });
  const [task] = await store.builds.records(build.id, "tasks", { offset: maxPage });
  if (task === undefined) throw new Error("there is no task");
  const failures = Array.from({ length: 20 }, (_, index) => ({
    level: 1,
    pattern: null,
    error: `e#`,
    ...(index > 17 && { message: `E${index}` }),
  }));
  const details = { ...task.details, failures };
  await apply(build, { records: { tasks: [{ ...task, details }] } });
  const item = attemptAt("list", { number: 21, level: 0, pattern: "E1", from: "last-attempt" });
  const order = taskOrderSchema.parse(await readOrder(store, build, item, base));
  expect(order).toMatchObject({ level: 0, from: "last-attempt", branch: "attempt/list-21", knownFix: learnt.fix });
  expect(order.earlier).toHaveLength(12);
  expect(order.earlier.slice(-3)).toEqual(["e#", "E18", "E19"]);
});

it("a task that is in no plan cannot be ordered", async () => {
  const { store, build } = await openPlanned();
  await expect(readOrder(store, build, attemptAt("other"), base)).rejects.toMatchObject({ code: "internal" });
});

it("an attempt at a task that asks for a GPU has a sandbox with it, and keeps its files when its time ends", async () => {
  const { store, build, apply } = await openPlanned();
  const tasks = [task("train", [], { criteria: ["add-item"], gpu: "H100" })];
  await apply(build, { records: { plans: [{ build: build.id, round: 2, intentHash: "hash", tasks }] } });
  const asked: CreateSandboxInput[] = [];
  const world = {
    build,
    store,
    kept: { write: async () => {} },
    repository: async () => ({ main: async () => base }),
    shared: { parts: async () => [] },
    secrets: { of: async () => [] },
    workspaces: { base: async () => null },
    agent: "builtin",
    settled: async () => {},
    provider: {
      list: async () => [],
      async create(request: CreateSandboxInput) {
        asked.push(request);
        return {};
      },
    },
  } as unknown as AttemptSurroundings;
  for (const name of ["train", "list"]) {
    await openPlace(world, await beginAttempt(world, attemptAt(name)), new AbortController().signal);
  }
  expect(asked[0]).toMatchObject({ gpu: "H100", onEnd: "stop", labels: { task: "train" } });
  expect(asked[1]).not.toHaveProperty("gpu");
});
