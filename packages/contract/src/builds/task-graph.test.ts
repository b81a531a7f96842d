import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { dependentsOf, depthsOf, findCycle, type TaskNode, tailsOf, topologicalOrder } from "./task-graph.ts";

function graph(edges: Readonly<Record<string, readonly string[]>>): TaskNode[] {
  return Object.entries(edges).map(([id, dependencies]) => ({ id, dependencies }));
}

/** Without a cycle: each depends on some that come before it. */
const acyclic = fc.array(fc.array(fc.nat(), { maxLength: 4 }), { minLength: 1, maxLength: 25 }).map((picks) =>
  picks.map((pick, index) => ({
    id: `task-${index}`,
    dependencies: index === 0 ? [] : pick.map((n) => `task-${n % index}`),
  })),
);

describe("an order", () => {
  test("has dependencies first and equals by their id", () => {
    const tasks = graph({ z: [], c: ["z"], b: ["z", "a"], a: [] });
    expect(topologicalOrder(tasks)?.map(({ id }) => id)).toEqual(["a", "z", "b", "c"]);
  });

  test("is the same however the tasks are shuffled, and breaks no dependency", () => {
    fc.assert(
      fc.property(
        acyclic.chain((tasks) => fc.tuple(fc.constant(tasks), shuffled(tasks))),
        ([tasks, other]) => {
          const order = topologicalOrder(tasks) ?? [];
          expect(topologicalOrder(other)).toEqual(order);
          const places = new Map(order.map(({ id }, place) => [id, place]));
          for (const { id, dependencies } of tasks) {
            for (const dependency of dependencies) expect(places.get(dependency)).toBeLessThan(places.get(id) ?? -1);
          }
        },
      ),
    );
  });
});

describe("a cycle", () => {
  test.each([
    ["of one task", { a: ["a"] }, ["a", "a"]],
    ["of two", { a: ["b"], b: ["a"] }, ["a", "b", "a"]],
    ["behind others", { start: [], a: ["start", "c"], b: ["a"], c: ["b"], end: ["c"] }, ["a", "c", "b", "a"]],
  ])("%s is named by its path", (_, edges, path) => {
    expect(findCycle(graph(edges))).toEqual(path);
    expect(topologicalOrder(graph(edges))).toBeUndefined();
  });

  test("is found exactly when there is no order", () => {
    const any = fc
      .array(fc.array(fc.nat(9), { maxLength: 2 }), { minLength: 1, maxLength: 10 })
      .map((picks) => picks.map((pick, n) => ({ id: `${n}`, dependencies: pick.map(String) })));
    fc.assert(
      fc.property(any, (tasks) => {
        const cycle = findCycle(tasks);
        expect(cycle === undefined).toBe(topologicalOrder(tasks) !== undefined);
        for (const [place, id] of (cycle ?? []).slice(0, -1).entries()) {
          expect(tasks.find((task) => task.id === id)?.dependencies).toContain(cycle?.[place + 1]);
        }
      }),
    );
  });
});

test("depths, tails and dependents of a diamond", () => {
  const tasks = graph({ top: [], left: ["top"], right: ["top"], bottom: ["left", "right", "right"] });
  const minutes: Record<string, number> = { top: 1, left: 10, right: 3, bottom: 2 };
  expect(Object.fromEntries(depthsOf(tasks))).toEqual({ top: 0, left: 1, right: 1, bottom: 2 });
  expect(Object.fromEntries(tailsOf(tasks, ({ id }) => minutes[id] ?? 0))).toEqual({
    top: 13,
    left: 12,
    right: 5,
    bottom: 2,
  });
  expect(dependentsOf(tasks).get("right")).toEqual(["bottom"]);
});

function shuffled(tasks: readonly TaskNode[]) {
  return fc.shuffledSubarray([...tasks], { minLength: tasks.length });
}
