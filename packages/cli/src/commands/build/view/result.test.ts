import { type CostsView, type MergeQueueView, newId } from "@slipway/contract";
import { expect, test } from "vitest";
import { buildView, intent } from "../../../testing/stub-server.ts";
import { adviceOn, resultText } from "./result.ts";

const paint = (_: string, text: string) => text;
const spent = (of: string | null, spentMicroUsd: number) => ({ of, spentMicroUsd, reservedMicroUsd: 0, requests: 1 });
const costs: CostsView = {
  money: { budgetMicroUsd: 5_000_000, spentMicroUsd: 2_000_000, reservedMicroUsd: 0 },
  by: {
    task: [spent(null, 900_000), spent("cart", 100_000), spent("list", 1_000_000)],
    attempt: [],
    agent: [],
    gate: [],
    provider: [],
  },
};
const queue: MergeQueueView = {
  main: "f00d",
  window: 2,
  candidates: [],
  merges: [],
  gates: [
    { name: "build", passed: 3, failed: 0, broken: 0 },
    { name: "main-test", passed: 2, failed: 1, broken: 4 },
  ],
};
const tasks = { ...buildView().tasks, merged: 1, failed: 1 };
const task = { component: "backend", attempts: 1, level: null };
const view = buildView({
  status: "succeeded",
  reason: "satisfied",
  createdAt: 0,
  endedAt: 90_000,
  tasks,
  money: costs.money,
  taskList: [
    { id: "list", status: "merged", reason: null, ...task },
    { id: "pay", status: "failed", reason: "no\u001b[31m luck", ...task },
  ],
  criteria: [
    { id: "add-habit", satisfied: true, text: "POST /habits\nanswered \u001b]0;pwned\u00072xx" },
    { id: "phone", satisfied: false, text: "" },
  ],
  repository: "/var/lib/it's mine/repository.git",
  preview: "http://127.0.0.1:4123/",
  result: { repository: "/var/lib/it's mine/result.git", branch: "slipway/bld_1" },
});

test("a result has criteria with evidence, gates, costs, the repository and the preview", () => {
  expect(resultText({ view, costs, queue, intent: intent.intent }, paint).split("\n")).toEqual([
    "succeeded in 1m 30s: a habit tracker",
    "Criteria",
    "  ✓ A habit can be added",
    "    POST /habits answered 2xx",
    "  ✗ Nothing is cut off on a phone",
    "  · First use",
    "Not merged",
    "  ✗ pay: no luck",
    "Gates",
    "  build      3 passed",
    "  main-test  2 passed, 1 failed, 4 broken",
    "",
    "tasks:      1 of 2 merged",
    "cost:       2.00 USD of 5.00 USD; most for list 1.00 USD, cart 0.1000 USD",
    "repository: git clone '/var/lib/it'\\''s mine/repository.git' app",
    "merge:      git fetch '/var/lib/it'\\''s mine/result.git' slipway/bld_1 && git merge FETCH_HEAD",
    "preview:    http://127.0.0.1:4123/",
    "",
  ]);
});

test("a result whose main has no dev server says so in the place of its preview", () => {
  const library = { ...view, preview: null, nothingToShow: "main has no dev server" };
  const text = resultText({ view: library, costs, queue, intent: intent.intent }, paint);
  expect(text).toContain("preview:    nothing to show: main has no dev server\n");
});

test("a build that has nothing yet says how it stands", () => {
  const bare = buildView({ id: newId("bld"), status: "paused", reason: "budget", money: costs.money });
  const nothing = { ...queue, gates: [] };
  expect(resultText({ view: bare, costs, queue: nothing, intent: null }, paint)).toMatch(
    /^paused at its budget: a habit tracker\n\ncost: +2\.00 USD of 5\.00 USD; most/,
  );
});

test("a build that waits for a dispute says where to look; one that has ended asks nothing", () => {
  const disputed = buildView({ disputes: [{ number: 2, criterion: "adds\u001b[2J" }] });
  const seen = `Work keeps failing a check of adds. Is the check wrong? See: slipway disputes ${disputed.id}`;
  expect(adviceOn(disputed)).toBe(seen);
  const paused = { ...disputed, status: "paused", reason: "user" } as const;
  expect(adviceOn(paused)).toBe(`${seen}\nContinue with: slipway resume ${disputed.id}`);
  expect(adviceOn({ ...paused, reason: "budget" })).toContain("slipway resume --budget <usd>");
  expect(adviceOn({ ...disputed, status: "failed", endedAt: 1 })).toBeUndefined();
});
