import { type BuildView, newId, type TaskStatus, type TaskView } from "@slipway/contract";
import { describe, expect, test } from "vitest";
import { buildView, intent, plan } from "../../../testing/stub-server.ts";
import { drawBuild } from "./screen.ts";
import type { Looked } from "./task-row.ts";

const nowMs = 1_700_000_100_000;
const paint = (_: string, text: string) => text;
const draw = (looked: Partial<Looked>, cols = 80, rows = 24) =>
  drawBuild({ view: view(), intent: intent.intent, plan, ...looked }, { cols, rows, nowMs, paint });

function task(id: string, status: TaskStatus, changes: Partial<TaskView> = {}): TaskView {
  return { id, status, component: "frontend", attempts: 1, level: null, reason: null, ...changes };
}

const attempt = {
  id: newId("att"),
  number: 1,
  status: "working",
  phase: "build",
  doing: "writes src/list.ts" as string | null,
  level: null as number | null,
  sandbox: null,
  startedAt: nowMs - 62_000,
  heartbeatAt: null,
};

function view(changes: Partial<BuildView> = {}): BuildView {
  const taskList = changes.taskList ?? [
    task("setup", "merged"),
    task("list", "building"),
    task("store", "verifying"),
    task("end", "pending", { attempts: 0 }),
  ];
  const tasks = { ...buildView().tasks };
  for (const { status } of taskList) tasks[status]++;
  return buildView({
    createdAt: nowMs - 100_000,
    tasks,
    taskList,
    attempts: [{ ...attempt, task: "list" }],
    candidates: [
      {
        id: newId("cnd"),
        task: "store",
        attempt: attempt.id,
        status: "verifying",
        place: 1,
        commit: "c0ffee",
        gates: [
          { name: "compatibility", state: "passed" },
          { name: "build", state: "failed" },
          { name: "tests", state: "running" },
          { name: "intent", state: "broken" },
          { name: "main-test", state: "open" },
        ],
        reason: null,
        offeredAt: nowMs - 5000,
      },
    ],
    preview: "http://127.0.0.1:4123/",
    ...changes,
  });
}

test("shows the intent, every task in the order of the plan, gates, money, time and the preview", () => {
  expect(draw({})).toEqual([
    "a habit tracker",
    "running · 1m 40s · 1 of 4 merged · 1 of 5 at work · 0.0120 USD of 100.00 USD",
    `${"█".repeat(15)}${"▓".repeat(30)}${"░".repeat(15)}`,
    "intent: Know what to do (2 criteria, 1 workflow)",
    "",
    "1 ✓ setup  merged",
    `${"2 ● list   build: writes src/list.ts".padEnd(75)}1m 2s`,
    "  ◆ store  in line 1: compatibility ✓  build ✗  tests ▸  intent !  main-test ·",
    "3 ○ end    after list, store",
    "",
    "preview: http://127.0.0.1:4123/",
    "Ctrl-C: detach, pause or cancel",
  ]);
});

test("a candidate whose gate waits for a trouble to pass says which", () => {
  const { candidates } = view();
  const waiting = candidates.map((one) => ({ ...one, reason: "no space left\non device" }));
  const lines = draw({ view: view({ candidates: waiting }) }, 120);
  expect(lines.find((line) => line.includes(" store "))).toMatch(/main-test · {2}\(waits: no space left on device\)$/);
});

test("before there is a plan it says which stage is under way", () => {
  const planning = { stage: "lock", step: "underway", hold: "none" } as const;
  const lines = draw({
    view: view({ status: "planning", planning, taskList: [], attempts: [], preview: null }),
    intent: null,
    plan: null,
  });
  expect(lines).toEqual([
    "a habit tracker",
    "locking the intent · 1m 40s · 0.0120 USD of 100.00 USD",
    "",
    "",
    "Ctrl-C: detach, pause or cancel",
  ]);
});

test.each<[string, TaskView, Partial<typeof attempt> | undefined, string]>([
  [
    "a later attempt tells what it tries",
    task("list", "building"),
    { number: 3, level: 2 },
    "attempt 3 (level 2: deep analysis), build: writes src/list.ts",
  ],
  ["a paused one says so", task("list", "building"), { status: "paused", doing: null }, "paused"],
  [
    "a failed one says why",
    task("list", "failed", { reason: "no\u001b[31m luck\nat all" }),
    undefined,
    "failed: no luck at all",
  ],
  [
    "one that can begin waits for a sandbox",
    task("list", "pending", { level: 1 }),
    undefined,
    "level 1: a direct fix, waits for a sandbox",
  ],
  [
    "one that was interrupted tells what it waits to pass",
    task("list", "pending", { reason: "rate_limited: try again\nin 3 hours" }),
    undefined,
    "interrupted, waits to resume: rate_limited: try again in 3 hours",
  ],
])("%s", (_, shown, of, expected) => {
  const attempts = of === undefined ? [] : [{ ...attempt, task: "list", ...of }];
  const lines = draw({ view: view({ taskList: [task("setup", "merged"), shown], attempts, candidates: [] }) }, 100);
  expect(lines.find((line) => line.includes(" list "))).toContain(`list   ${expected}`);
});

describe("300 tasks", () => {
  const statuses = ["merged", "pending", "pending", "merged", "building", "pending"] as const;
  const taskList = Array.from({ length: 300 }, (_, index) => {
    const isBusy = index % 60 === 4;
    const status = statuses[index % 6] ?? "pending";
    return task(`task-${index}`, status === "building" && !isBusy ? "merged" : status);
  }).with(150, task("task-150", "failed", { reason: "no luck" }));
  const busy = taskList.filter(({ status }) => status === "building");
  const attempts = busy.map(({ id }) => ({ ...attempt, task: id }));
  const tasks = taskList.map(({ id }) => ({ ...plan.tasks[0], id, dependencies: [] })) as typeof plan.tasks;
  const many = { view: view({ taskList, attempts, candidates: [] }), plan: { ...plan, tasks } };

  test.each([24, 16, 12, 40])("fold into %i rows, and what happens stays in sight", (rows) => {
    const lines = draw(many, 80, rows);
    expect(lines.length).toBe(rows - 1);
    for (const { id } of busy) expect(lines.some((line) => line.includes(`● ${id} `))).toBe(true);
    expect(lines.some((line) => line.includes("task-150"))).toBe(true);
    const fold = lines.find((line) => line.startsWith("… and ")) ?? "";
    const folded = [...fold.matchAll(/\d+/g)].reduce((sum, [count]) => sum + Number(count), 0);
    expect(folded + lines.filter((line) => line.includes("task-")).length).toBe(300);
  });
});

test.each([
  [200, 60],
  [80, 24],
  [40, 12],
  [19, 6],
  [10, 3],
  [1, 1],
])("on a screen of %i by %i no line is longer and none is too many", (cols, rows) => {
  const long = view({ request: "words ".repeat(100), preview: `http://127.0.0.1:1/${"x".repeat(100)}` });
  const lines = draw({ view: long }, cols, rows);
  expect(lines.length).toBeLessThanOrEqual(Math.max(1, rows - 1));
  expect(Math.max(...lines.map((line) => line.length))).toBeLessThanOrEqual(Math.max(cols, 9));
});

test("an address that does not fit is left out, with how to have it", () => {
  const preview = `http://127.0.0.1:4123/?slipway_token=${"t".repeat(32)}`;
  const shown = view({ preview });
  expect(draw({ view: shown }, 80)).toContain(`preview: ${preview}`);
  expect(draw({ view: shown }, 60)).toContain(`preview: slipway preview ${shown.id}`);
});

test("a bar has no more than its width, and shows what there is little of", () => {
  const taskList = Array.from({ length: 299 }, (_, index) => task(`t${index}`, "merged"));
  const [, , bar] = draw({ view: view({ taskList: [...taskList, task("last", "failed")], candidates: [] }) });
  expect(bar).toBe(`${"█".repeat(59)}×`);
});
